package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"ringmq/admin/definitions"
	"ringmq/engine"
)

// Prefix is where the paths of this package begin; what follows is the verb.
const Prefix = "/api/ringmq/ctl/"

// requestBytesMax bounds a request: a file of definitions of a hundred thousand queues fits.
const requestBytesMax = 256 << 20

// Request is what a verb gets. Each uses a part of it.
type Request struct {
	VHost     string `json:"vhost,omitempty"`
	Name      string `json:"name,omitempty"`
	Component string `json:"component,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
	ApplyTo   string `json:"apply-to,omitempty"`
	Priority  int    `json:"priority,omitempty"`
	// Value is JSON as the operator typed it: a definition, limits, the value of a
	// parameter, or a file.
	Value string `json:"value,omitempty"`
	// Description and the rest are of a virtual host; nil leaves them.
	Description *string `json:"description,omitempty"`
	Tags        *string `json:"tags,omitempty"` // with commas
	DefaultType *string `json:"default_queue_type,omitempty"`
}

// Refusal is the body of an answer that is none.
type Refusal struct {
	Reason string `json:"reason"`
}

// Options of a handler.
type Options struct {
	Broker *engine.Broker
	Codec  definitions.Codec
	About  definitions.About
	// Unready says why nothing may be asked yet, "" when it may. Any goroutine.
	Unready func() string
	Log     *slog.Logger
}

// Handler answers requests below Prefix and leaves all others to next.
func Handler(o Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verb, ours := strings.CutPrefix(r.URL.Path, Prefix)
		if !ours {
			next.ServeHTTP(w, r)
			return
		}
		o.serve(w, r, verb)
	})
}

func (o *Options) serve(w http.ResponseWriter, r *http.Request, verb string) {
	run, known := verbs[verb]
	switch why := o.Unready(); {
	case r.Method != http.MethodPost:
		refuse(w, http.StatusMethodNotAllowed, errors.New("verbs are asked for by POST"))
		return
	case !known:
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no verb %q", verb))
		return
	case why != "":
		refuse(w, http.StatusServiceUnavailable, errors.New(why))
		return
	}
	// A large import takes its time, and the operator waits for it.
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Time{})  //nolint:errcheck // without it the listener's own limit counts
	c.SetWriteDeadline(time.Time{}) //nolint:errcheck // as above
	var req Request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestBytesMax))
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the request cannot be read: %w", err))
		return
	}
	answer, err := run(o, &req)
	if err != nil {
		status := http.StatusBadRequest
		if definitions.IsUnknown(err) {
			status = http.StatusNotFound
		}
		refuse(w, status, err)
		return
	}
	if !strings.HasPrefix(verb, "list_") && !strings.HasPrefix(verb, "export_") {
		o.Log.Info("done for \"ringmq ctl\"", "verb", verb, "vhost", req.VHost, "name", req.Name)
	}
	if answer == nil {
		answer = struct{}{}
	}
	write(w, http.StatusOK, answer)
}

func refuse(w http.ResponseWriter, status int, err error) { write(w, status, Refusal{err.Error()}) }

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"reason":"the answer could not be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // who asked has gone
}
