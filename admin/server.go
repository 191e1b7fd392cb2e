package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the listener. A management request is a few hundred bytes and is answered from
// memory, so that all of them are generous for people and tight for a peer that stalls.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second // a scrape or a listing over a slow link
	idleTimeout       = 60 * time.Second // longer than the usual scrape interval of 15 s
	headerBytesMax    = 32 << 10
	connectionsMax    = 256 // more wait in the kernel's accept queue
)

// Server is the HTTP listener. Its methods may be called from any goroutine.
type Server struct {
	http http.Server
}

// New makes a server that answers from src. Nothing listens until Serve.
func New(src Source, log *slog.Logger) *Server { return newServer(Handler(src, log), log) }

// NewTrusted is New without a login: for a listener that only the operator can reach.
func NewTrusted(src Source, log *slog.Logger) *Server {
	return newServer(TrustedHandler(src, log), log)
}

// Serving is a server that answers by a handler of the caller's, with this package's limits.
func Serving(h http.Handler, log *slog.Logger) *Server { return newServer(h, log) }

func newServer(h http.Handler, log *slog.Logger) *Server {
	return &Server{http: http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

// Serve answers requests on l until Shutdown and closes l. It returns nil after a Shutdown and
// the listener's error otherwise.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(limitListener(l, connectionsMax))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops listening, waits for requests in progress until ctx ends, then closes what is
// left.
func (s *Server) Shutdown(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
}
