package admin

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
)

func TestQueues(t *testing.T) {
	f := newFake()
	h := testHandler(f)
	if w := do(t, h, call{method: "GET", target: "/api/queues"}); w.Body.String() != "[]" {
		t.Errorf("without queues: %s", w.Body)
	}
	f.queues = []QueueInfo{
		{Name: "b", VHost: "/", Ready: 3, Unacked: 2, Consumers: 1, Durable: true, Type: "quorum", Policy: "p", Operator: "o"},
		{Name: "z", VHost: "a/b", Exclusive: true, AutoDelete: true},
		{Name: "a", VHost: "/"},
	}
	for _, c := range []struct {
		target string
		names  []string
	}{
		{"/api/queues", []string{"a", "b", "z"}},
		{"/api/queues/", []string{"a", "b", "z"}},
		{"/api/queues/%2F", []string{"a", "b"}},
		{"/api/queues/a%2Fb", []string{"z"}},
		{"/api/queues/none", nil},
	} {
		var names []string
		for _, q := range decode[[]queueJSON](t, do(t, h, call{method: "GET", target: c.target})) {
			names = append(names, q.Name)
		}
		if !reflect.DeepEqual(names, c.names) {
			t.Errorf("%s: %v, want %v", c.target, names, c.names)
		}
	}
	list := decode[[]map[string]any](t, do(t, h, call{method: "GET", target: "/api/queues/%2F"}))
	want := map[string]any{"name": "b", "vhost": "/", "type": "quorum", "policy": "p", "operator_policy": "o", "node": "ringmq@test", "state": "running",
		"durable": true, "exclusive": false, "auto_delete": false, "messages": 5.0, "messages_ready": 3.0,
		"messages_unacknowledged": 2.0, "consumers": 1.0}
	if !reflect.DeepEqual(list[1], want) {
		t.Errorf("\n got %v\nwant %v", list[1], want)
	}
}

// TestStatus shows that what goes in comes out: "ringmq ctl" decodes what the broker encodes.
func TestStatus(t *testing.T) {
	f := newFake()
	h := testHandler(f)
	body := do(t, h, call{method: "GET", target: "/api/ringmq/status"}).Body.Bytes()
	if !bytes.Contains(body, []byte(`"alarms":[],`)) || !bytes.Contains(body, []byte(`"logs":[]`)) {
		t.Errorf("empty lists must not be null: %s", body)
	}
	f.status = Status{Product: "ringmq", PID: 7, Alarms: []string{"disk"}, MemoryUsed: 1 << 40, Ready: 9,
		Logs: []LogStatus{{Loop: 1, Size: 2, SyncMean: 0.25, SpaceError: "no space"}}}
	if got := decode[Status](t, do(t, h, call{method: "GET", target: "/api/ringmq/status"})); !reflect.DeepEqual(got, f.status) {
		t.Errorf("\n got %+v\nwant %+v", got, f.status)
	}
	if w := do(t, h, call{method: "GET", target: "/api/ringmq/status", user: "-"}); w.Code != http.StatusUnauthorized {
		t.Errorf("without a login: %d", w.Code)
	}
}

// TestTrusted shows that the operator's socket needs no login, and serves the same pages.
func TestTrusted(t *testing.T) {
	f := newFake()
	h := TrustedHandler(f, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for target, want := range map[string]int{"/api/ringmq/status": 200, "/api/connections": 200, "/api/none": 404, "/health": 200} {
		r := httptest.NewRequest("GET", target, nil)
		r.RemoteAddr = "@"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	r := httptest.NewRequest("GET", "/api/whoami", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var who struct{ Name string }
	if err := json.Unmarshal(w.Body.Bytes(), &who); err != nil || who.Name != localUser {
		t.Errorf("whoami: %s, %v", w.Body, err)
	}
}
