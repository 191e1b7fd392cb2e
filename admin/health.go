package admin

import "net/http"

// health answers 200 while clients are served and 503 before and after, so that a load balancer
// or a start script has one place to ask. It needs no login: probes have none.
func (a *api) health(w http.ResponseWriter, _ *request) {
	why := a.src.Unready()
	if why == "" {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, map[string]string{
		"status": "failed",
		"reason": why,
	})
}

// healthLive answers 200 as long as the process can answer at all: a supervisor that restarts
// on 503 must not kill a broker that drains.
func (a *api) healthLive(w http.ResponseWriter, _ *request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
