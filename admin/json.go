package admin

import (
	"encoding/json"
	"net/http"
)

// writeJSON answers with v. A value that cannot be encoded is our fault and answers 500 rather
// than half a document.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
		body = []byte(`{"error":"internal_error","reason":"the answer could not be encoded"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the peer has gone: there is nobody left to tell
}

// errorBody is RabbitMQ's shape of a refusal.
type errorBody struct {
	Error  string `json:"error"`
	Reason string `json:"reason"`
}

func writeError(w http.ResponseWriter, status int, kind, reason string) {
	writeJSON(w, status, errorBody{kind, reason})
}

func writeNotFound(w http.ResponseWriter) {
	writeError(w, http.StatusNotFound, "Object Not Found", "Not Found")
}
