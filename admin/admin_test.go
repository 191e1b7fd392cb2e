package admin

import (
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeSource is a broker with a fixed state that remembers what was closed.
type fakeSource struct {
	mu       sync.Mutex
	unready  string
	conns    []ConnInfo
	counters []Counter
	queues   []QueueInfo
	status   Status
	closed   map[string]string // connection name -> reason
}

func (f *fakeSource) Unready() string     { return f.unready }
func (f *fakeSource) Queues() []QueueInfo { return append([]QueueInfo(nil), f.queues...) }
func (f *fakeSource) Status() Status      { return f.status }
func (f *fakeSource) Counters() []Counter { return f.counters }
func (f *fakeSource) Overview() Overview {
	return Overview{Product: "ringmq", Version: "1.2.3", Node: "ringmq@test", Connections: len(f.conns),
		CompatVersion: "3.13.7", Uptime: 1500 * time.Millisecond, Published: 7, Delivered: 8, Acked: 9,
		Queues: 4, Ready: 5, Unacked: 6,
		Listeners: []Listener{{"amqp", netip.MustParseAddrPort("127.0.0.1:5672")}}}
}

func (f *fakeSource) Connections() []ConnInfo {
	return append([]ConnInfo(nil), f.conns...)
}

func (f *fakeSource) CloseConnection(name, reason string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.conns {
		if f.conns[i].Name == name {
			f.closed[name] = reason
			return true
		}
	}
	return false
}

func (f *fakeSource) CheckLogin(user, password string, remote netip.Addr) bool {
	return user == "guest" && password == "guest" && remote.IsLoopback()
}

const (
	plainName = "127.0.0.1:40000 -> 127.0.0.1:5672"
	oddName   = "a/b %2F ünï"
)

func newFake() *fakeSource {
	return &fakeSource{
		closed: map[string]string{},
		conns: []ConnInfo{
			{Name: oddName},
			{
				Name: plainName, User: "guest", VHost: "/", State: "running",
				Protocol: "AMQP 0-9-1", AuthMechanism: "PLAIN",
				Local:    netip.MustParseAddrPort("127.0.0.1:5672"),
				Peer:     netip.MustParseAddrPort("[::ffff:127.0.0.1]:40000"),
				Channels: 2, ChannelMax: 2047, FrameMax: 131072, Heartbeat: 10 * time.Second,
				ConnectedAt: time.UnixMilli(1700000000123), BytesReceived: 10, BytesSent: 20,
				ClientProperties: map[string]any{"connection_name": "orders", "nan": math.NaN()},
			},
		},
	}
}

func testHandler(f *fakeSource) http.Handler {
	return Handler(f, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

type call struct {
	method, target string
	header         map[string]string
	user, password string
	remote         string
}

// do runs one request; by default it logs in as guest from loopback.
func do(t *testing.T, h http.Handler, c call) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(c.method, c.target, nil)
	r.RemoteAddr = "127.0.0.1:33333"
	if c.remote != "" {
		r.RemoteAddr = c.remote
	}
	if c.user == "" {
		c.user, c.password = "guest", "guest"
	}
	if c.user != "-" {
		r.SetBasicAuth(c.user, c.password)
	}
	for k, v := range c.header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Fatalf("content type %q, body %q", got, w.Body)
	}
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return v
}

func TestHealth(t *testing.T) {
	f := newFake()
	h := testHandler(f)
	w := do(t, h, call{method: "GET", target: "/health", user: "-"})
	if w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
		t.Fatalf("ready: %d %s", w.Code, w.Body)
	}
	f.unready = "draining"
	w = do(t, h, call{method: "GET", target: "/health", user: "-"})
	if body := decode[map[string]string](t, w); w.Code != 503 || body["status"] != "failed" || body["reason"] != "draining" {
		t.Fatalf("not ready: %d %v", w.Code, body)
	}
	if w = do(t, h, call{method: "GET", target: "/health/live", user: "-"}); w.Code != 200 {
		t.Fatalf("live while draining: %d", w.Code)
	}
}

// TestLogin covers spec/amqp091.md D.1, the line on errors.
func TestLogin(t *testing.T) {
	h := testHandler(newFake())
	cases := []struct {
		name   string
		call   call
		status int
		reason string
	}{
		{"good", call{}, 200, ""},
		{"good over IPv6", call{remote: "[::1]:9"}, 200, ""},
		{"good over mapped IPv4", call{remote: "[::ffff:127.0.0.1]:9"}, 200, ""},
		{"no credentials", call{user: "-"}, 401, "Login failed"},
		{"wrong password", call{user: "guest", password: "x"}, 401, "Login failed"},
		{"unknown user", call{user: "bob", password: "guest"}, 401, "Login failed"},
		{"guest from elsewhere", call{remote: "192.0.2.1:9"}, 401, "User can only log in via localhost"},
		{"forwarding header is not believed", call{remote: "192.0.2.1:9",
			header: map[string]string{"X-Forwarded-For": "127.0.0.1"}}, 401,
			"User can only log in via localhost"},
		{"unreadable address", call{remote: "@"}, 401, "User can only log in via localhost"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, target := range []string{"/api/whoami", "/api/connections", "/api/overview"} {
				c.call.method, c.call.target = "GET", target
				w := do(t, h, c.call)
				if w.Code != c.status {
					t.Fatalf("%s: %d %s", target, w.Code, w.Body)
				}
				if c.status != 401 {
					continue
				}
				body := decode[errorBody](t, w)
				if body.Error != "not_authorized" || body.Reason != c.reason {
					t.Fatalf("%s: %+v", target, body)
				}
				if got := w.Header().Get("WWW-Authenticate"); got != `Basic realm="RabbitMQ Management"` {
					t.Fatalf("%s: challenge %q", target, got)
				}
			}
		})
	}
	// A stranger is not told which paths exist.
	if w := do(t, h, call{method: "GET", target: "/api/nothing", user: "-"}); w.Code != 401 {
		t.Fatalf("unknown path without login: %d", w.Code)
	}
}

func TestConnectionsList(t *testing.T) {
	f := newFake()
	h := testHandler(f)
	for _, target := range []string{"/api/connections", "/api/connections/", "/api/connections?page_size=1"} {
		w := do(t, h, call{method: "GET", target: target})
		list := decode[[]map[string]any](t, w)
		if len(list) != 2 || list[0]["name"] != plainName || list[1]["name"] != oddName {
			t.Fatalf("%s: %s", target, w.Body)
		}
	}
	list := decode[[]map[string]any](t, do(t, h, call{method: "GET", target: "/api/connections"}))
	want := map[string]any{
		"user": "guest", "vhost": "/", "state": "running", "protocol": "AMQP 0-9-1",
		"auth_mechanism": "PLAIN", "ssl": false, "host": "127.0.0.1", "port": 5672.0,
		"peer_host": "127.0.0.1", "peer_port": 40000.0, "channels": 2.0, "channel_max": 2047.0,
		"frame_max": 131072.0, "timeout": 10.0, "connected_at": 1700000000123.0,
		"recv_oct": 10.0, "send_oct": 20.0, "user_provided_name": "orders", "node": "ringmq@test",
	}
	for k, v := range want {
		if list[0][k] != v {
			t.Errorf("%s = %v, want %v", k, list[0][k], v)
		}
	}
	props, ok := list[0]["client_properties"].(map[string]any)
	if !ok || props["connection_name"] != "orders" || props["nan"] != "NaN" {
		t.Errorf("client_properties = %v", list[0]["client_properties"])
	}
	if props, ok := list[1]["client_properties"].(map[string]any); !ok || len(props) != 0 {
		t.Errorf("absent client_properties = %v, want an empty object", list[1]["client_properties"])
	}

	f.conns = nil
	if w := do(t, h, call{method: "GET", target: "/api/connections"}); w.Body.String() != "[]" {
		t.Fatalf("empty list: %s", w.Body)
	}
}

func TestConnectionByName(t *testing.T) {
	for _, name := range []string{plainName, oddName} {
		f := newFake()
		h := testHandler(f)
		target := "/api/connections/" + url.PathEscape(name)
		w := do(t, h, call{method: "GET", target: target})
		if got := decode[map[string]any](t, w); w.Code != 200 || got["name"] != name {
			t.Fatalf("GET %s: %d %s", target, w.Code, w.Body)
		}
		w = do(t, h, call{method: "DELETE", target: target,
			header: map[string]string{"X-Reason": "moving house"}})
		if w.Code != 204 || w.Body.Len() != 0 || f.closed[name] != "moving house" {
			t.Fatalf("DELETE %s: %d %q, closed %v", target, w.Code, w.Body, f.closed)
		}
		w = do(t, h, call{method: "DELETE", target: target})
		if w.Code != 204 || f.closed[name] != "Closed via management plugin" {
			t.Fatalf("DELETE without a reason: %d, closed %v", w.Code, f.closed)
		}
	}
}

func TestUnknown(t *testing.T) {
	f := newFake()
	h := testHandler(f)
	for _, c := range []call{
		{method: "GET", target: "/nothing"},
		{method: "GET", target: "/healthz"},
		{method: "GET", target: "/api"},
		{method: "GET", target: "/api/nothing"},
		{method: "GET", target: "/api/connections/none"},
		{method: "DELETE", target: "/api/connections/none"},
		{method: "GET", target: "/api/connections/a/b%20%252F%20%C3%BCn%C3%AF"}, // the slash unescaped
		{method: "GET", target: "/api//connections"},
	} {
		w := do(t, h, c)
		body := decode[errorBody](t, w)
		if w.Code != 404 || body != (errorBody{"Object Not Found", "Not Found"}) {
			t.Errorf("%s %s: %d %+v", c.method, c.target, w.Code, body)
		}
	}
	if len(f.closed) != 0 {
		t.Errorf("closed %v", f.closed)
	}
	w := do(t, h, call{method: "POST", target: "/api/connections/x"})
	if w.Code != 405 || w.Header().Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestOverview(t *testing.T) {
	w := do(t, testHandler(newFake()), call{method: "GET", target: "/api/overview"})
	got := decode[overviewJSON](t, w)
	if got.ProductName != "ringmq" || got.ProductVersion != "1.2.3" ||
		got.ObjectTotals.Connections != 2 || got.ObjectTotals.Queues != 4 ||
		got.RabbitMQVersion != "3.13.7" || got.UptimeMS != 1500 ||
		got.MessageStats != (messageStatsJSON{Publish: 7, DeliverGet: 8, Ack: 9}) ||
		got.QueueTotals.Messages != 11 || len(got.Listeners) != 1 || got.Listeners[0].Port != 5672 {
		t.Fatalf("%s", w.Body)
	}
	w = do(t, testHandler(newFake()), call{method: "GET", target: "/api/whoami"})
	if got := decode[map[string]any](t, w); got["name"] != "guest" {
		t.Fatalf("%s", w.Body)
	}
}

// TestIndex shows that the root lists every page, without a login, and names no object.
func TestIndex(t *testing.T) {
	w := do(t, testHandler(newFake()), call{method: "GET", target: "/", user: "-"})
	got := decode[indexJSON](t, w)
	if w.Code != 200 || got.Product != "ringmq" || got.Version != "1.2.3" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	pages := map[string]pageJSON{}
	for _, p := range got.Pages {
		pages[p.Path] = p
	}
	for _, want := range []pageJSON{
		{"/", "GET, HEAD", false}, {"/health", "GET, HEAD", false}, {"/metrics", "GET, HEAD", false},
		{"/api/overview", "GET, HEAD", true}, {"/api/connections/{}", "DELETE, GET, HEAD", true},
	} {
		if pages[want.Path] != want {
			t.Errorf("%+v, want %+v", pages[want.Path], want)
		}
	}
	if strings.Contains(w.Body.String(), "127.0.0.1") {
		t.Errorf("the index names a connection: %s", w.Body)
	}
}

// TestLoginRefusalIsLogged shows that the log tells apart what the answer must not.
func TestLoginRefusalIsLogged(t *testing.T) {
	for _, c := range []struct {
		call call
		want string
	}{
		{call{user: "guest", password: "x"}, `user=guest remote=127.0.0.1 reason="unknown user or wrong password"`},
		{call{user: "bob", password: "guest", remote: "192.0.2.1:9"}, `user=bob remote=192.0.2.1 reason="unknown user or wrong password"`},
		{call{remote: "192.0.2.1:9"}, `user=guest remote=192.0.2.1 reason="guest may log in from loopback only"`},
		{call{user: "-"}, ""},
		{call{}, ""},
	} {
		var log strings.Builder
		h := Handler(newFake(), slog.New(slog.NewTextHandler(&log, nil)))
		c.call.method, c.call.target = "GET", "/api/whoami"
		do(t, h, c.call)
		if (c.want == "") != (log.String() == "") || !strings.Contains(log.String(), c.want) {
			t.Errorf("%+v: log %q, want %q", c.call, log.String(), c.want)
		}
		if strings.Contains(log.String(), "password=") {
			t.Errorf("the log holds a password: %s", &log)
		}
	}
}

func TestMetrics(t *testing.T) {
	f := newFake()
	f.counters = []Counter{
		{Name: "ringmq_b_total", Help: "Turns\nof \\ loops.", Kind: "counter", Value: 3,
			Labels: []Label{{"loop", "0"}, {"who", "a\"b\\c\nd"}}},
		{Name: "ringmq_a", Help: "Ratio.", Kind: "gauge", Value: 0.25},
		{Name: "ringmq_b_total", Help: "Turns\nof \\ loops.", Kind: "counter", Value: 1e15,
			Labels: []Label{{"loop", "1"}}},
		{Name: "ringmq_a", Help: "Ratio.", Kind: "gauge", Value: 1796073621.632},
		{Name: "ringmq_a", Help: "Ratio.", Kind: "gauge", Value: 1.5e-9},
		{Name: "ringmq_c", Help: "Odd.", Kind: "thing", Value: math.Inf(1)},
	}
	w := do(t, testHandler(f), call{method: "GET", target: "/metrics", user: "-"})
	want := strings.Join([]string{
		`# HELP ringmq_a Ratio.`,
		`# TYPE ringmq_a gauge`,
		`ringmq_a 0.25`,
		`ringmq_a 1796073621.632`,
		`ringmq_a 1.5e-09`,
		`# HELP ringmq_b_total Turns\nof \\ loops.`,
		`# TYPE ringmq_b_total counter`,
		`ringmq_b_total{loop="0",who="a\"b\\c\nd"} 3`,
		`ringmq_b_total{loop="1"} 1000000000000000`,
		`# HELP ringmq_c Odd.`,
		`# TYPE ringmq_c untyped`,
		`ringmq_c +Inf`,
		``,
	}, "\n")
	if w.Code != 200 || w.Body.String() != want {
		t.Fatalf("%d\n%s\nwant\n%s", w.Code, w.Body, want)
	}
}
