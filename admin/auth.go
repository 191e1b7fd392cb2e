package admin

import (
	"net/http"
	"net/netip"
)

// login checks the request's basic authentication and answers 401 itself when it fails, in the
// bodies that RabbitMQ's tools know (spec D.1).
func (a *api) login(w http.ResponseWriter, r *http.Request) (user string, ok bool) {
	user, password, given := r.BasicAuth()
	remote := remoteAddr(r)
	if given && a.src.CheckLogin(user, password, remote) {
		return user, true
	}
	reason, cause := "Login failed", "unknown user or wrong password"
	if user == "guest" && !remote.IsLoopback() {
		reason, cause = "User can only log in via localhost", "guest may log in from loopback only"
	}
	if given { // without credentials it is a browser that waits for the challenge
		a.log.Warn("API login refused", "user", user, "remote", remote, "reason", cause)
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
	writeError(w, http.StatusUnauthorized, "not_authorized", reason)
	return "", false
}

// remoteAddr is the peer's address as the socket has it. Forwarding headers are not believed:
// anyone can send "X-Forwarded-For: 127.0.0.1", and guest's only fence is the address.
// The zero Addr, which no login accepts, stands for an address that cannot be read.
func remoteAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
