package admin

import (
	"log/slog"
	"net/http"
	"strings"
)

// api holds what the handlers share.
type api struct {
	src    Source
	log    *slog.Logger
	about  Overview // its names and versions, which do not change
	node   string   // name of this broker in listings
	router router
	// trusted takes every request as the operator's own: who can reach the socket may do all.
	trusted bool
}

// localUser is who asks over a trusted socket, for the log.
const localUser = "local"

// Handler returns the whole HTTP surface of the broker, without a listener.
func Handler(src Source, log *slog.Logger) http.Handler { return newAPI(src, log) }

// TrustedHandler is Handler without a login, for a socket whose file permissions are the login.
func TrustedHandler(src Source, log *slog.Logger) http.Handler {
	a := newAPI(src, log)
	a.trusted = true
	return a
}

func newAPI(src Source, log *slog.Logger) *api {
	about := src.Overview()
	a := &api{src: src, log: log, about: about, node: about.Node}
	rt := &a.router
	rt.handle("GET", "/", a.index)
	rt.handle("GET", "/health", a.health)
	rt.handle("GET", "/health/ready", a.health)
	rt.handle("GET", "/health/live", a.healthLive)
	rt.handle("GET", "/metrics", a.metrics)
	rt.handle("GET", "/api/overview", a.overview)
	rt.handle("GET", "/api/whoami", a.whoami)
	rt.handle("GET", "/api/queues", a.queues)
	rt.handle("GET", "/api/queues/{}", a.queues)
	rt.handle("GET", "/api/ringmq/status", a.status)
	rt.handle("GET", "/api/connections", a.connections)
	rt.handle("GET", "/api/connections/{}", a.connection)
	rt.handle("DELETE", "/api/connections/{}", a.connectionDelete)
	return a
}

// ServeHTTP logs in, finds the route and runs it. The login comes first under /api, so that a
// stranger cannot learn which names exist.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{Request: r}
	path := r.URL.EscapedPath()
	if path == "/api" || strings.HasPrefix(path, "/api/") {
		if req.user = localUser; !a.trusted {
			user, ok := a.login(w, r)
			if !ok {
				return
			}
			req.user = user
		}
	}
	found, names := a.router.find(path)
	if found == nil {
		writeNotFound(w)
		return
	}
	h := found.handler(r.Method)
	if h == nil {
		w.Header().Set("Allow", found.allow())
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed",
			"Allowed methods: "+found.allow())
		return
	}
	req.names = names
	h(w, req)
}
