package admin

import (
	"net/http"
	"strings"
)

// indexJSON is what someone gets who points a browser at the port.
type indexJSON struct {
	Product string     `json:"product"`
	Version string     `json:"version"`
	Pages   []pageJSON `json:"pages"`
}

type pageJSON struct {
	Path    string `json:"path"` // {} stands for one percent-encoded name
	Methods string `json:"methods"`
	Login   bool   `json:"login"` // basic authentication is needed
}

// index lists the pages that exist. They are the same in every ringmq of a version, so that the
// list tells a stranger nothing about this one; names of objects come after the login only.
func (a *api) index(w http.ResponseWriter, _ *request) {
	out := indexJSON{Product: a.about.Product, Version: a.about.Version}
	for i := range a.router.routes {
		rt := &a.router.routes[i]
		path := "/" + strings.Join(rt.segments, "/")
		out.Pages = append(out.Pages, pageJSON{path, rt.allow(), strings.HasPrefix(path, "/api/")})
	}
	writeJSON(w, http.StatusOK, out)
}
