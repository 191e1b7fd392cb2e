package admin

import (
	"net/http"
	"net/url"
	"sort"
	"strings"
)

// route is one path pattern with its handlers by method. A segment "{}" of the pattern matches
// any one non-empty segment of the path, which arrives decoded in the request's names.
type route struct {
	segments []string
	methods  map[string]handlerFunc
}

// request is what a handler gets: the HTTP request, and what the router and the login found.
type request struct {
	*http.Request
	names []string // decoded values of the pattern's "{}" segments, in order
	user  string   // who logged in; empty outside /api
}

type handlerFunc func(w http.ResponseWriter, r *request)

// router matches escaped paths. It stands in for http.ServeMux, which cleans and redirects on
// the decoded path: a virtual host named "/" (%2F) or a connection name with an encoded slash
// would be answered with a redirect to another resource.
type router struct {
	routes []route
}

func (rt *router) handle(method, pattern string, h handlerFunc) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i := range rt.routes {
		if equalSegments(rt.routes[i].segments, segments) {
			rt.routes[i].methods[method] = h
			return
		}
	}
	rt.routes = append(rt.routes, route{segments, map[string]handlerFunc{method: h}})
}

// find returns the route and the decoded names for an escaped path. One trailing slash is
// ignored, as RabbitMQ's API does: client suites ask for /api/connections/.
func (rt *router) find(escapedPath string) (*route, []string) {
	path := strings.TrimSuffix(strings.TrimPrefix(escapedPath, "/"), "/")
	parts := strings.Split(path, "/")
	for i := range rt.routes {
		if names, ok := rt.routes[i].match(parts); ok {
			return &rt.routes[i], names
		}
	}
	return nil, nil
}

func (r *route) match(parts []string) (names []string, ok bool) {
	if len(parts) != len(r.segments) {
		return nil, false
	}
	for i, want := range r.segments {
		got, err := url.PathUnescape(parts[i])
		if err != nil || got == "" && want != "" {
			return nil, false
		}
		if want == "{}" {
			names = append(names, got)
		} else if got != want {
			return nil, false
		}
	}
	return names, true
}

// allow lists the route's methods for the Allow header.
func (r *route) allow() string {
	var methods []string
	for m := range r.methods {
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	sort.Strings(methods)
	return strings.Join(methods, ", ")
}

// handler returns the handler for a method; HEAD is GET whose body net/http drops.
func (r *route) handler(method string) handlerFunc {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return r.methods[method]
}

func equalSegments(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
