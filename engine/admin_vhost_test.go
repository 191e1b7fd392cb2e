package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ringmq/engine/core"
	"ringmq/engine/queue"
)

// Everything that operators asked for is there after a restart, and in force.
func TestRestoreAdmin(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	b := h.Broker
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := VHostSettings{Description: "a \xff", Tags: []string{"x", "y"}, DefaultQueueType: "quorum", Tracing: true}
	must(b.AddVHost("w", want))
	h.durableQueue("q", queue.Settings{Args: core.Args{"x-max-length": number(9)}})
	h.exchange("x", "direct", durable)
	h.policy(Policy{Name: "p", Pattern: "^q$|^x$", Priority: -2}, `{"max-length":3,"message-ttl":5,"alternate-exchange":"ae"}`)
	h.policy(Policy{Name: "p", Pattern: ".", Operator: true}, `{"max-length":2}`)
	h.policy(Policy{Name: "gone", Pattern: "."}, `{"max-length":1}`)
	h.clearPolicy("gone", false)
	must(b.SetVHostLimits("w", Limits{MaxConnections: 5, MaxQueues: 0, MaxChannels: 9}))
	must(b.SetVHostLimits("/", Limits{5, 5, 5}))
	must(b.ClearVHostLimits("/"))
	must(b.SetUserLimits("guest", Limits{MaxConnections: -1, MaxQueues: 4, MaxChannels: 2}))
	must(b.SetUserLimits("other", Limits{MaxConnections: 1, MaxChannels: -1}))
	must(b.ClearUserLimits("other"))

	for _, shards := range []int{1, 2} {
		b := restart(t, d, shards)
		v := b.VHost("/")
		q := v.Queue([]byte("q"))
		if q.Rules.MaxLength != 2 || q.Rules.TTL != 5 || q.Settings.MaxLength != 9 {
			t.Errorf("the queue comes back with %+v", q.Rules)
		}
		if ae := v.Exchange([]byte("x")).alternate.Load(); ae == nil || *ae != "ae" {
			t.Errorf("the exchange comes back with alternate %v", ae)
		}
		if got, ok := b.VHostSettings("w"); !ok || fmt.Sprint(got) != fmt.Sprint(want) || b.VHost("w").DefaultQueueType() != queue.Quorum {
			t.Errorf("the vhost comes back as %+v", got)
		}
		if p := b.Policies(false); len(p) != 1 || p[0].Priority != -2 || p[0].Pattern != "^q$|^x$" {
			t.Errorf("policies %+v", p)
		}
		if got := b.VHostLimits("w"); got != (Limits{5, 0, -1}) || b.VHostLimits("/") != NoLimits() {
			t.Errorf("limits of vhosts %v and %v", got, b.VHostLimits("/"))
		}
		if got := b.AllUserLimits(); len(got) != 1 || got["guest"] != (Limits{-1, -1, 2}) || b.UserLimits("guest") != got["guest"] {
			t.Errorf("limits of users %v", got)
		}
		if _, err := b.VHost("w").DeclareQueue("q", queue.Settings{}, nil, b.Shards[0], false); err == nil {
			t.Error("the limit of queues is not in force")
		}
	}
}

// A vhost goes with all that it had, in one change, and its name starts afresh.
func TestDeleteVHost(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	b := h.Broker
	if err := b.AddVHost("w", VHostSettings{}); err != nil {
		t.Fatal(err)
	}
	var closed []string
	b.OnVHostDeleted(func(v *VHost) {
		if b.VHost(v.Name) != nil {
			t.Error("connections are closed while the vhost can still be found")
		}
		closed = append(closed, v.Name)
	})
	v := h.v
	h.v = b.VHost("w")
	h.durableQueue("q", queue.Settings{})
	h.queue("transient", nil)
	for i := range 3 * adminBatch {
		h.durableQueue(fmt.Sprint("q", i), queue.Settings{})
	}
	h.exchange("x", "topic", durable)
	h.exchange("late", "x-delayed-message", func(s *ExchangeSettings) {
		s.Durable, s.Args = true, core.Args{"x-delayed-type": text("fanout")}
	})
	h.bind(h.v.Exchange([]byte("x")), h.v.Queue([]byte("q")), "k", nil)
	h.policy(Policy{VHost: "w", Name: "p"}, `{"max-length":5}`)
	h.policy(Policy{VHost: "w", Name: "o", Operator: true}, `{"max-length":5}`)
	for _, err := range []error{b.SetVHostLimits("w", Limits{1, 1, 1}), b.SetParameter("shovel", "w", "s", []byte("1"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.publish("x", "k", "")
	h.rest()
	q := h.v.Queue([]byte("q"))
	before := len(d.sets)
	if err := b.DeleteVHost("w"); err != nil {
		t.Fatal(err)
	}
	h.rest()
	if len(d.sets) != before+1 {
		t.Errorf("%d changes of the catalog", len(d.sets)-before)
	}
	for kind, records := range d.records {
		for key := range records {
			if strings.HasPrefix(key, `"w"`) || strings.Contains(key, `"w"`) {
				t.Errorf("kind %d still has %s", kind, key)
			}
		}
	}
	if b.VHost("w") != nil || !q.Deleted() || b.queuesOn[0].Load() != 0 || len(b.Parameters()) != 0 {
		t.Errorf("vhost %v, queue deleted %v, %d queues counted", b.VHost("w"), q.Deleted(), b.queuesOn[0].Load())
	}
	same(t, "closed", closed, []string{"w"})
	if _, err := h.v.DeclareQueue("new", queue.Settings{}, nil, h.Shard, false); err == nil {
		t.Error("a queue is declared in a vhost that is gone")
	}
	if err := h.v.DeclareExchange("new", "fanout", ExchangeSettings{}); err == nil {
		t.Error("an exchange is declared in a vhost that is gone")
	}
	if err := b.AddVHost("w", VHostSettings{}); err != nil || len(describe(b.VHost("w"))) != 0 || b.VHostLimits("w") != NoLimits() {
		t.Errorf("again: %v, %v", err, describe(b.VHost("w")))
	}
	same(t, "restored", describe(restart(t, d, 1).VHost("w")), nil)
	h.v = v
	h.end()
}

func TestVHostRefused(t *testing.T) {
	h := newHouse(t)
	b := h.Broker
	for want, err := range map[string]error{
		"cannot be deleted":                b.DeleteVHost("/"),
		"no such virtual host":             b.DeleteVHost("none"),
		"must not be empty":                b.AddVHost("", VHostSettings{}),
		"at most 255 bytes":                b.AddVHost(strings.Repeat("v", 256), VHostSettings{}),
		"unsupported default queue type":   b.AddVHost("v", VHostSettings{DefaultQueueType: "mirrored"}),
		"'gone': no such virtual host":     b.SetVHostLimits("gone", NoLimits()),
		"a limit is a number from 0 up":    b.SetUserLimits("u", Limits{MaxConnections: -2}),
		"name of a user must not be empty": b.SetUserLimits("", NoLimits()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if !IsNoSuchVHost(b.DeleteVHost("none")) || len(b.VHostNames()) != 1 {
		t.Error("vhosts", b.VHostNames())
	}
	// Settings of the vhost that is there are replaced (V4-11).
	if err := b.AddVHost("/", VHostSettings{DefaultQueueType: "stream"}); err != nil || h.v.DefaultQueueType() != queue.Stream {
		t.Errorf("%v, %s", err, h.v.DefaultQueueType())
	}
	if _, ok := b.VHostSettings("none"); ok {
		t.Error("settings of a vhost that is not there")
	}
}

// QUE-15: the limit of queues counts new names of any sort.
func TestQueueLimit(t *testing.T) {
	h := newHouse(t)
	h.queue("a", nil)
	if err := h.Broker.SetVHostLimits("/", Limits{-1, 2, -1}); err != nil {
		t.Fatal(err)
	}
	me := &owner{"me"}
	mine, err := h.v.DeclareQueue("mine", queue.Settings{Exclusive: true}, me, h.Shard, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.v.DeclareQueue("amq.gen-1", queue.Settings{}, nil, h.Shard, true)
	want := "PRECONDITION_FAILED - cannot declare queue 'amq.gen-1': queue limit in vhost '/' (2) is reached"
	if textOf(err) != want {
		t.Errorf("%s, want %s", textOf(err), want)
	}
	h.queue("a", nil) // it is there
	h.DeleteQueue(mine)
	h.queue("b", nil)
	h.Broker.SetVHostLimits("/", Limits{-1, 0, -1})
	if _, err := h.v.DeclareQueue("c", queue.Settings{}, nil, h.Shard, false); err == nil || !strings.Contains(err.Text, "(0)") {
		t.Errorf("a limit of none: %v", err)
	}
	h.Broker.ClearVHostLimits("/")
	h.queue("c", nil)
}

// CON-14, CHA-02, SEC-07: limits are exact when all open at once.
func TestSeatsAreExact(t *testing.T) {
	b := NewBroker(1, textCodec{})
	v := b.VHost("/")
	b.SetVHostLimits("/", Limits{MaxConnections: 7, MaxQueues: -1})
	b.SetUserLimits("u", Limits{MaxConnections: 5, MaxChannels: 3})
	for _, c := range []struct {
		user        string
		most        int64
		refusal     string
		connections bool
	}{
		{"u", 5, "connection refused for user 'u': user connection limit (5) is reached", true},
		{"other", 7, "access to vhost '/' refused for user 'other': connection limit (7) is reached", true},
		{"u", 3, "number of channels opened for user 'u' has reached the maximum allowed user limit of (3)", false},
	} {
		var open, peak atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				seat := &Seat{v: v, u: b.user(c.user), name: c.user}
				for range 200 {
					err := (*core.Error)(nil)
					if c.connections {
						seat, err = b.Seat(v, c.user)
					} else {
						err = seat.OpenChannel()
					}
					if err != nil {
						if err.Text != c.refusal || err.Refusal != core.NotAllowed {
							t.Errorf("%v, want %s", err, c.refusal)
							return
						}
						continue
					}
					n := open.Add(1)
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
					}
					open.Add(-1)
					if c.connections {
						seat.Leave()
					} else {
						seat.CloseChannel()
					}
				}
			})
		}
		wg.Wait()
		if peak.Load() > c.most || peak.Load() == 0 {
			t.Errorf("%s: %d at once, %d are allowed", c.user, peak.Load(), c.most)
		}
		u := b.user(c.user)
		if u.connections != 0 || u.channels != 0 || v.seats.connections != 0 {
			t.Errorf("left: %d connections, %d channels, %d in the vhost", u.connections, u.channels, v.seats.connections)
		}
	}
	// A seat gives its channels back when it is left; none at all refuses everything.
	seat, err := b.Seat(v, "u")
	if err != nil || seat.OpenChannel() != nil || seat.OpenChannel() != nil {
		t.Fatal("no seat", err)
	}
	seat.Leave()
	b.SetUserLimits("u", Limits{MaxConnections: -1, MaxChannels: 0})
	seat, err = b.Seat(v, "u")
	if err != nil || seat.OpenChannel() == nil || b.user("u").channels != 0 {
		t.Errorf("%v, %d channels", err, b.user("u").channels)
	}
	seat.Leave()
	b.SetVHostLimits("/", Limits{MaxConnections: 0, MaxQueues: -1})
	if _, err := b.Seat(v, "u"); err == nil {
		t.Error("a connection to a vhost that takes none")
	}
	var none *Seat
	if none.OpenChannel() != nil {
		t.Error("no seat, no limit")
	}
	none.CloseChannel()
	none.Leave()
}

// What a file of definitions asks for: what is there already stays as it is (DEF-03).
func TestAdminDeclare(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	b := h.Broker
	ttl := core.Args{"x-message-ttl": number(5)}
	err := b.Import(func() error {
		return errors.Join(
			b.AdminDeclareExchange("/", "x", "topic", true, false, false, nil),
			b.AdminDeclareExchange("/", "x", "fanout", false, false, false, nil), // stays a topic exchange
			b.AdminDeclareExchange("/", "amq.topic", "topic", true, false, false, nil),
			b.AdminDeclareQueue("/", "q", true, false, ttl),
			b.AdminDeclareQueue("/", "q", true, true, nil),
			b.AdminDeclareQueue("/", "amq.gen-1", true, false, nil),
			b.AdminBind("/", "x", "queue", "q", "k", nil),
			b.AdminBind("/", "x", "queue", "q", "k", nil),
			b.AdminBind("/", "amq.topic", "exchange", "x", "#", nil),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "routed", h.route("amq.topic", "k", ""), words("q"))
	if q := h.v.Queue([]byte("q")); q.Rules.TTL != 5 || q.Settings.AutoDelete {
		t.Errorf("the queue is %+v", q.Settings)
	}
	same(t, "restored", describe(restart(t, d, 1).VHost("/")), describe(h.v))
	for want, err := range map[string]error{
		"no exchange 'none' in vhost '/'": b.AdminBind("/", "none", "queue", "q", "", nil),
		"no queue 'none' in vhost '/'":    b.AdminBind("/", "x", "queue", "none", "", nil),
		"destination_type":                b.AdminBind("/", "x", "topic", "none", "", nil),
		"x-message-ttl":                   b.AdminDeclareQueue("/", "bad", true, false, core.Args{"x-message-ttl": text("x")}),
		"unknown exchange type 'nope'":    b.AdminDeclareExchange("/", "bad", "nope", true, false, false, nil),
		"no such virtual host":            b.AdminDeclareQueue("none", "q", true, false, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if b.CheckQueue("new", "q", true, false, ttl) != nil || b.CheckQueue("/", "q", true, false, core.Args{"x-message-ttl": text("x")}) == nil ||
		b.CheckExchange("/", "y", "topic", nil) != nil || b.CheckExchange("new", "y", "nope", nil) == nil {
		t.Error("the checks before an import")
	}
	if b.VHost("new") != nil || slices.Contains(b.VHostNames(), "new") {
		t.Error("a check made a vhost")
	}
}

// slowDisk says for itself when changes are durable.
type slowDisk struct {
	*memory
	asked chan func(error)
}

// Notify implements Definitions.
func (d *slowDisk) Notify(_ uint64, f func(error)) { d.asked <- f }

// A change that the disk does not take is told, though it is in force.
func TestAdminWaitsForTheDisk(t *testing.T) {
	d := &slowDisk{newMemory(), make(chan func(error))}
	d.manual = true
	h := newHouse(t)
	if err := h.Broker.Restore(d); err != nil {
		t.Fatal(err)
	}
	told := make(chan error)
	go func() {
		told <- h.Broker.SetPolicy(Policy{VHost: "/", Name: "p", Definition: map[string]any{"max-length": 1}})
	}()
	for _, want := range []error{errors.New("no room"), nil} {
		// It waits: nothing else ends it.
		f := <-d.asked
		select {
		case err := <-told:
			t.Fatalf("told %v before the disk", err)
		default:
		}
		f(want)
		if err := <-told; (err == nil) != (want == nil) {
			t.Errorf("the disk says %v, the operator hears %v", want, err)
		}
		if len(h.Broker.Policies(false)) != 1 {
			t.Error("the policy is not in force")
		}
		go func() { told <- h.Broker.SetUserLimits("u", NoLimits()) }()
	}
	(<-d.asked)(nil)
	<-told
}

// The clock of a queue that was declared before the loop ran starts with the loop.
func TestEarlyQueueExpires(t *testing.T) {
	h := newHouse(t)
	if err := h.Broker.AdminDeclareQueue("/", "q", true, false, core.Args{"x-expires": number(10)}); err != nil {
		t.Fatal(err)
	}
	q := h.v.Queue([]byte("q"))
	h.now = 5e15
	h.touchEarly()
	if at := q.ExpiresAt(); at != 5e15+10e6 || h.early != nil {
		t.Errorf("it expires at %d", at)
	}
}

// V4-11, TYP-01: the default type of a vhost is that of durable queues without one.
func TestDefaultQueueType(t *testing.T) {
	d := newMemory()
	h := recorded(t, d)
	if err := h.Broker.AddVHost("/", VHostSettings{DefaultQueueType: "quorum"}); err != nil {
		t.Fatal(err)
	}
	declare := func(name string, s queue.Settings, generated bool) queue.Type {
		t.Helper()
		q, err := h.v.DeclareQueue(name, s, nil, h.Shard, generated)
		if err != nil {
			t.Fatal(err)
		}
		return q.Settings.Type
	}
	for _, c := range []struct {
		name string
		s    queue.Settings
		made bool
		want queue.Type
	}{
		{"plain", queue.Settings{Durable: true}, false, queue.Quorum},
		{"named", queue.Settings{Durable: true, Args: core.Args{"x-queue-type": text("classic")}}, false, queue.Classic},
		{"transient", queue.Settings{}, false, queue.Classic},
		{"auto", queue.Settings{Durable: true, AutoDelete: true}, false, queue.Classic},
		{"exclusive", queue.Settings{Exclusive: true}, false, queue.Classic},
		{"amq.gen-1", queue.Settings{Durable: true}, true, queue.Classic},
	} {
		if got := declare(c.name, c.s, c.made); got != c.want {
			t.Errorf("%s is %s", c.name, got)
		}
	}
	// A queue keeps its type, whatever the default is then.
	if err := h.Broker.AddVHost("/", VHostSettings{}); err != nil {
		t.Fatal(err)
	}
	declare("late", queue.Settings{Durable: true}, false)
	v := restart(t, d, 1).VHost("/")
	for name, want := range map[string]queue.Type{"plain": queue.Quorum, "late": queue.Classic, "named": queue.Classic} {
		if got := v.Queue([]byte(name)).Settings.Type; got != want {
			t.Errorf("%s comes back as %s", name, got)
		}
	}
}
