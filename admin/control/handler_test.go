package control

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ringmq/engine"
	"ringmq/engine/core"
)

// noArgs is a codec for files without arguments.
type noArgs struct{}

func (noArgs) Args(map[string]any) (core.Args, error) { return nil, nil }
func (noArgs) JSON(core.Args) map[string]any          { return map[string]any{} }

// ask sends one request to a handler of a broker.
func ask(b *engine.Broker, unready, method, path, body string) (int, string) {
	o := Options{
		Broker: b, Codec: noArgs{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Unready: func() string { return unready },
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	w := httptest.NewRecorder()
	Handler(o, next).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestStatusCodes(t *testing.T) {
	for _, c := range []struct {
		unready, method, path, body string
		code                        int
		want                        string
	}{
		{"", "GET", "/api/queues", "", 418, ""},
		{"", "POST", Prefix + "list_vhosts", "{}", 200, `[{"name":"/","description":"","tags":[],"default_queue_type":"classic","tracing":false,"queues":0}]`},
		{"", "POST", Prefix + "add_vhost", `{"name":"v","tags":"a, b"}`, 200, `{}`},
		{"", "GET", Prefix + "list_vhosts", "", 405, `{"reason":"verbs are asked for by POST"}`},
		{"", "POST", Prefix + "odd", "{}", 404, `{"reason":"there is no verb \"odd\""}`},
		{"the broker is starting", "POST", Prefix + "list_vhosts", "{}", 503, `{"reason":"the broker is starting"}`},
		{"", "POST", Prefix + "list_vhosts", "{", 400, `{"reason":"the request cannot be read: unexpected end of JSON input"}`},
		{"", "POST", Prefix + "delete_vhost", `{"name":"none"}`, 404, `{"reason":"virtual host 'none': no such virtual host"}`},
		{"", "POST", Prefix + "delete_vhost", `{"name":"/"}`, 400, `{"reason":"the virtual host '/' cannot be deleted: clients that name none use it"}`},
		{"", "POST", Prefix + "import_definitions", `{"value":"{\"queues\":[7]}"}`, 400, `{"reason":"queues[0]: an object is expected, not the number 7"}`},
	} {
		code, body := ask(engine.NewBroker(1, nil), c.unready, c.method, c.path, c.body)
		if code != c.code || body != c.want {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.path, c.body, code, body, c.code, c.want)
		}
	}
}

// Every listing and the export answer a list or an object, whatever there is: tools index into it.
func TestEmptyAnswers(t *testing.T) {
	b := engine.NewBroker(1, nil)
	for name := range verbs {
		if !strings.HasPrefix(name, "list_") && name != "export_definitions" {
			continue
		}
		code, body := ask(b, "", "POST", Prefix+name, "{}")
		var v any
		if err := json.Unmarshal([]byte(body), &v); code != 200 || err != nil || v == nil || strings.Contains(body, "null") {
			t.Errorf("%s: %d %s, %v", name, code, body, err)
		}
	}
}

// CON-14: limits of a user add up, and are lifted one by one or all at once.
func TestUserLimits(t *testing.T) {
	b := engine.NewBroker(1, nil)
	for _, c := range []struct{ verb, value, want string }{
		{"set_user_limits", `{"max-connections":5}`, `[{"user":"u","limits":{"max-connections":5}}]`},
		{"set_user_limits", `{"max-channels":0}`, `[{"user":"u","limits":{"max-channels":0,"max-connections":5}}]`},
		{"set_user_limits", `{"max-connections":-1}`, `[{"user":"u","limits":{"max-channels":0}}]`},
		{"clear_user_limits", "max-connections", `[{"user":"u","limits":{"max-channels":0}}]`},
		{"clear_user_limits", "all", `[]`},
	} {
		question, err := json.Marshal(Request{Name: "u", Value: c.value})
		if err != nil {
			t.Fatal(err)
		}
		if code, body := ask(b, "", "POST", Prefix+c.verb, string(question)); code != 200 {
			t.Errorf("%s: %d %s", c.value, code, body)
		}
		if _, body := ask(b, "", "POST", Prefix+"list_user_limits", "{}"); body != c.want {
			t.Errorf("%s %s: %s, want %s", c.verb, c.value, body, c.want)
		}
	}
}
