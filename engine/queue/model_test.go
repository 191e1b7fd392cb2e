package queue

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"ringmq/engine/core"
)

// refEntry is a message as the model sees it.
type refEntry struct {
	id       uint64
	size     int64
	deadline int64 // 0 = none, neverDue = only for a consumer that is ready
	fresh    bool  // with neverDue: the Settle of its arrival is still to come
	handed   int
	state    uint8
	seq      uint64
	holder   *refConsumer
	counted  bool // holds a place in the shared window
}

// refConsumer is a consumer with what it may take.
type refConsumer struct {
	Consumer
	sink    fakeSink
	unacked uint32
	gone    bool
}

// model is a queue as one would write it without a thought for speed, beside
// the real one. It does not foresee which of several equal consumers is served:
// it judges each delivery and each dead letter at the moment it happens, and
// the state afterwards.
type model struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	now  int64
	host *fakeHost
	q    *Queue
	s    Settings

	entries   []*refEntry // in the order of arrival, none that is gone
	incoming  *refEntry   // being published: judged as the last one
	consumers []*refConsumer
	window    *Window
	used      int32 // places of window that are taken
	settled   []uint64
	nextID    uint64
	discard   *refEntry  // being rejected
	exhausted *refEntry  // coming back once too often
	store     *fakeStore // nil: everything is in memory
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s", m.seed, fmt.Sprintf(format, args...))
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), now: int64(1e12), nextID: 1,
		host: newHost(t), window: &Window{}}
	m.s = defaults()
	if m.rng.IntN(3) == 0 {
		m.s.TTL = []int64{0, 5, 50}[m.rng.IntN(3)]
	}
	if m.rng.IntN(3) == 0 {
		m.s.MaxLength = int64(m.rng.IntN(20))
	}
	if m.rng.IntN(4) == 0 {
		m.s.MaxBytes = int64(m.rng.IntN(100))
	}
	m.s.Overflow = Overflow(m.rng.IntN(3))
	if m.rng.IntN(3) == 0 {
		m.s.Type = Quorum
		m.s.DeliveryLimit = []int64{-1, 0, 2}[m.rng.IntN(3)]
	}
	m.q = New("q", 1, 0, m.s)
	m.q.Attach(m.host, m.now)
	m.host.onDead = m.died
	return m
}

func (m *model) count(state uint8) (n int) {
	for _, e := range m.entries {
		if e.state == state {
			n++
		}
	}
	return n
}

func (m *model) bytes() (n int64) {
	for _, e := range m.entries {
		if e.state == stateReady {
			n += e.size
		}
	}
	return n
}

func (m *model) first() *refEntry {
	for _, e := range m.entries {
		if e.state == stateReady {
			return e
		}
	}
	return nil
}

// admit makes the message that is being published the last of the queue.
func (m *model) admit() {
	if m.incoming != nil {
		m.entries = append(m.entries, m.incoming)
		m.incoming = nil
	}
}

func (m *model) remove(e *refEntry) {
	m.entries = slices.DeleteFunc(m.entries, func(o *refEntry) bool { return o == e })
}

func (m *model) find(id uint64) *refEntry {
	if m.incoming != nil && m.incoming.id == id {
		m.admit()
	}
	for _, e := range m.entries {
		if e.id == id {
			return e
		}
	}
	m.fatalf("message %d comes out and is not in", id)
	return nil
}

func (m *model) overLimit() bool {
	return m.s.MaxLength >= 0 && int64(m.count(stateReady)) > m.s.MaxLength || m.s.MaxBytes >= 0 && m.bytes() > m.s.MaxBytes
}

func (m *model) atLimit() bool {
	return m.s.MaxLength >= 0 && int64(m.count(stateReady)) >= m.s.MaxLength || m.s.MaxBytes >= 0 && m.bytes() >= m.s.MaxBytes
}

// credit reports whether a consumer could take a message, with used places of
// the shared window taken.
func (m *model) credit(k *refConsumer, used int32) bool {
	if k.gone || k.sink.full || !k.NoAck && k.Prefetch != 0 && k.unacked >= k.Prefetch {
		return false
	}
	limit := m.window.limit.Load()
	return k.Window == nil || k.NoAck || limit == 0 || used < limit
}

// delivered judges a delivery.
func (m *model) delivered(k *refConsumer, seq uint64, msg *core.Message, f DeliverFlags) {
	e := m.find(idOf(msg))
	switch {
	case e.state != stateReady:
		m.fatalf("message %d is delivered and not ready", e.id)
	case e != m.first():
		m.fatalf("message %d is delivered, %d is before it", e.id, m.first().id)
	case e.deadline != 0 && e.deadline <= m.now && !(e.deadline == neverDue && e.fresh):
		m.fatalf("message %d is delivered, overdue", e.id)
	case f&Redelivered != 0 != (e.handed > 0):
		m.fatalf("message %d: handed out %d times, redelivered is %v", e.id, e.handed, f&Redelivered != 0)
	case f.Count() != m.cameBack(e):
		m.fatalf("message %d: handed out %d times, the delivery says %d", e.id, e.handed, f.Count())
	case f&Owned != 0 != k.NoAck:
		m.fatalf("message %d: owned %v, no ack %v", e.id, f&Owned != 0, k.NoAck)
	case !m.credit(k, m.used):
		m.fatalf("message %d goes to a consumer without credit", e.id)
	}
	for _, o := range m.consumers {
		if o.Priority > k.Priority && m.credit(o, m.used) {
			m.fatalf("message %d goes to priority %d, and %d has credit", e.id, k.Priority, o.Priority)
		}
	}
	limited := k.Window != nil && !k.NoAck && m.window.limit.Load() > 0
	if f&Counted != 0 != limited {
		m.fatalf("message %d: counted %v, limited %v", e.id, f&Counted != 0, limited)
	}
	if k.NoAck {
		m.remove(e)
		return
	}
	e.state, e.holder, e.seq, e.counted, e.fresh = stateUnacked, k, seq, limited, false
	e.handed++
	k.unacked++
	if limited {
		m.used++
	}
}

// cameBack is what a delivery says of how often the message came back.
func (m *model) cameBack(e *refEntry) int {
	if m.s.Type == Quorum {
		return e.handed
	}
	return 0
}

// died judges a dead letter.
func (m *model) died(msg *core.Message, why core.DeathReason) {
	id := idOf(msg)
	if why == core.DiedMaxLength && m.incoming != nil && m.incoming.id == id && m.s.Overflow == RejectPublishDLX {
		return // refused: never was in
	}
	e := m.find(id)
	switch why {
	case core.DiedExpired:
		if e.state != stateReady || e.deadline == 0 || e.deadline > m.now {
			m.fatalf("message %d expires: state %d, deadline %d, now %d", id, e.state, e.deadline, m.now)
		}
		if e.deadline == neverDue && e.fresh && m.anyCredit() && m.store == nil {
			m.fatalf("message %d expires, and a consumer was ready", id)
		}
	case core.DiedMaxLength:
		if m.s.Overflow != DropHead || !m.overLimit() || e != m.first() {
			m.fatalf("message %d is dropped: over the limit %v, first %v", id, m.overLimit(), e == m.first())
		}
	case core.DiedDeliveryLimit:
		if e != m.exhausted {
			m.fatalf("message %d was handed out %d times only", id, e.handed)
		}
	case core.DiedRejected:
		if e != m.discard {
			m.fatalf("message %d is rejected by nobody", id)
		}
	}
	m.remove(e)
}

func (m *model) anyCredit() bool {
	return slices.ContainsFunc(m.consumers, func(k *refConsumer) bool { return m.credit(k, m.used) })
}

// settle calls Settle and judges what it left undone.
func (m *model) settle(budget int) {
	before := m.count(stateReady)
	more := m.q.Settle(m.now, budget)
	for m.store != nil && m.store.answer(m.q) {
		more = m.q.Settle(m.now, budget)
	}
	for _, e := range m.entries {
		if e.deadline == neverDue && e.state == stateReady && more {
			continue // waits for its chance
		}
		if e.state == stateReady && e.deadline != 0 && e.deadline <= m.now {
			m.fatalf("message %d is ready, overdue", e.id)
		}
	}
	if more && budget >= before {
		m.fatalf("more to do with a budget of %d", budget)
	}
	if !more && m.first() != nil && m.anyCredit() {
		m.fatalf("message %d waits, and a consumer has credit", m.first().id)
	}
	if m.s.Overflow == DropHead && m.overLimit() {
		m.fatalf("%d messages of %d bytes are above the limit", m.count(stateReady), m.bytes())
	}
	if !more {
		for _, e := range m.entries {
			e.fresh = false
		}
	}
}

func (m *model) publish() {
	e := &refEntry{id: m.nextID, size: int64(m.rng.IntN(20)), state: stateReady}
	m.nextID++
	msg := m.host.message(e.id, int(e.size))
	ttl := m.s.TTL
	if m.rng.IntN(5) == 0 {
		msg.Flags |= core.FlagExpires
		msg.TTL = []int64{0, 3, 30}[m.rng.IntN(3)]
		if ttl < 0 || msg.TTL < ttl {
			ttl = msg.TTL
		}
	}
	switch {
	case ttl == 0:
		e.deadline, e.fresh = neverDue, true
	case ttl > 0:
		e.deadline = m.now + ttl*millisecond
	}
	m.incoming = e
	if m.s.Overflow == DropHead {
		m.admit() // whatever happens inside, it is in already
	}
	accepted := m.publishOne(msg)
	if m.incoming == nil { // judged already: it went in and perhaps out
		if !accepted {
			m.fatalf("message %d is refused, and was in", e.id)
		}
		return
	}
	if want := m.s.Overflow == DropHead || !m.atLimit(); accepted != want {
		m.fatalf("message %d: accepted %v with %d ready", e.id, accepted, m.count(stateReady))
	}
	if accepted {
		m.admit()
	}
	m.incoming = nil
}

func (m *model) subscribe() {
	k := &refConsumer{}
	k.Consumer = Consumer{Priority: int32(m.rng.IntN(3)), Prefetch: uint32(m.rng.IntN(4)), NoAck: m.rng.IntN(4) == 0,
		Exclusive: m.rng.IntN(10) == 0}
	if m.rng.IntN(2) == 0 {
		k.Window = m.window
	}
	k.Sink = &k.sink
	k.sink.host = m.host
	k.sink.onDeliver = func(seq uint64, msg *core.Message, f DeliverFlags) { m.delivered(k, seq, msg, f) }
	allowed := len(m.consumers) == 0 || !k.Exclusive
	for _, o := range m.consumers {
		allowed = allowed && !o.Exclusive
	}
	if m.q.Subscribe(&k.Consumer) != allowed {
		m.fatalf("subscribed beside %d others: want %v", len(m.consumers), allowed)
	}
	if allowed {
		m.consumers = append(m.consumers, k)
	}
}

// unsubscribe ends a consumer; its channel may end with it, or keep what it has.
func (m *model) unsubscribe() {
	if len(m.consumers) == 0 {
		return
	}
	i := m.rng.IntN(len(m.consumers))
	k := m.consumers[i]
	m.q.Unsubscribe(&k.Consumer, m.now)
	k.gone = true
	m.consumers = slices.Delete(m.consumers, i, i+1)
	if m.rng.IntN(2) == 0 {
		for _, e := range slices.Clone(m.entries) {
			if e.state == stateUnacked && e.holder == k {
				m.giveBack(e)
			}
		}
	}
}

// held picks a message that somebody holds.
func (m *model) held() *refEntry {
	var held []*refEntry
	for _, e := range m.entries {
		if e.state == stateUnacked {
			held = append(held, e)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return held[m.rng.IntN(len(held))]
}

// release takes the message from its holder's account, as a channel does.
func (m *model) release(e *refEntry) (c *Consumer) {
	if e.counted {
		m.used--
		m.window.Give(1)
		e.counted = false
	}
	m.settled = append(m.settled, e.seq)
	if e.holder == nil {
		return nil
	}
	e.holder.unacked--
	return &e.holder.Consumer
}

// moved offers all consumers messages again, as a channel does when its window
// moved.
func (m *model) moved() {
	for _, k := range m.consumers {
		m.q.Resume(&k.Consumer)
	}
}

func (m *model) giveBack(e *refEntry) {
	if m.s.Type == Quorum {
		m.giveBackCounted(e)
		return
	}
	undelivered := m.rng.IntN(3) == 0
	if undelivered {
		e.handed--
	}
	c := m.release(e)
	e.state = stateReady
	m.q.Requeue(e.seq, c, undelivered)
	m.moved()
}

// giveBackCounted returns a message to a quorum queue: behind all others, or to its dead
// letter exchange.
func (m *model) giveBackCounted(e *refEntry) {
	c := m.release(e)
	if limit := m.s.DeliveryLimit; limit >= 0 && int64(e.handed) > limit {
		m.exhausted = e
		m.q.Requeue(e.seq, c, false)
		if m.exhausted = nil; slices.Contains(m.entries, e) {
			m.fatalf("message %d was handed out %d times and is still in", e.id, e.handed)
		}
	} else {
		m.remove(e)
		m.entries = append(m.entries, e)
		e.state = stateReady
		m.q.Requeue(e.seq, c, false)
	}
	m.moved()
}

func (m *model) settleHeld() {
	e := m.held()
	if e == nil {
		return
	}
	switch m.rng.IntN(4) {
	case 0, 1:
		c := m.release(e)
		m.remove(e)
		m.q.Ack(e.seq, c)
	case 2:
		m.giveBack(e)
	case 3:
		c := m.release(e)
		m.discard = e
		m.q.Discard(e.seq, c)
		if m.discard = nil; slices.Contains(m.entries, e) {
			m.fatalf("rejected message %d is still in", e.id)
		}
	}
	m.moved()
}

func (m *model) get() {
	noAck := m.rng.IntN(3) == 0
	g, state := m.q.Get(noAck, m.now)
	for state == GotLater && m.store.answer(m.q) {
		g, state = m.q.Get(noAck, m.now)
	}
	ok := state == GotOne
	first := m.first()
	if ok != (first != nil) {
		m.fatalf("got %v, ready %d", ok, m.count(stateReady))
	}
	if !ok {
		return
	}
	if id := idOf(g.Message); id != first.id || g.Redelivered != (first.handed > 0) || int(g.Count) != m.cameBack(first) || g.Remaining != m.count(stateReady)-1 {
		m.fatalf("got %d (%v, %d left), want %d", id, g.Redelivered, g.Remaining, first.id)
	}
	if noAck {
		m.remove(first)
		g.Message.Release(m.host.arena)
		return
	}
	first.state, first.holder, first.seq, first.fresh = stateUnacked, nil, g.Seq, false
	first.handed++
}

func (m *model) purge() {
	n := m.q.Purge(m.now)
	if n != m.count(stateReady) {
		m.fatalf("purged %d of %d", n, m.count(stateReady))
	}
	m.entries = slices.DeleteFunc(m.entries, func(e *refEntry) bool { return e.state == stateReady })
}

// stale settles what was settled before: nothing may happen.
func (m *model) stale() {
	if len(m.settled) == 0 {
		return
	}
	seq := m.settled[m.rng.IntN(len(m.settled))]
	for _, e := range m.entries {
		if e.seq == seq && e.state == stateUnacked {
			return // came back and went out again
		}
	}
	m.q.Ack(seq, nil)
	m.q.Discard(seq, nil)
	m.q.Requeue(seq, nil, false)
}

func (m *model) step() {
	switch m.rng.IntN(16) {
	case 0, 1, 2, 3:
		m.publish()
	case 4:
		for range m.rng.IntN(3 * chunkEntries / 2) {
			m.publish()
		}
	case 5:
		m.subscribe()
	case 6:
		if m.rng.IntN(3) == 0 {
			m.unsubscribe()
		}
	case 7, 8, 9:
		m.settleHeld()
	case 10:
		for range m.rng.IntN(30) {
			m.settleHeld()
		}
	case 11:
		m.get()
	case 12:
		m.now += int64(m.rng.IntN(20)) * millisecond
	case 13:
		m.consumerMood()
	case 14:
		m.settle(1 + m.rng.IntN(30))
	case 15:
		if m.rng.IntN(6) == 0 {
			m.purge()
		} else {
			m.stale()
		}
	}
	if m.rng.IntN(3) == 0 {
		m.settle(core.DispatchBatch)
	}
	if m.store != nil && m.rng.IntN(3) == 0 {
		m.q.PageOut(true, false)
	}
	for _, g := range m.host.graves {
		g.Free(m.host.arena, m.rng.IntN(200))
	}
	ready, unacked := m.count(stateReady), m.count(stateUnacked)
	if m.q.Ready() != ready || m.q.Unacked() != unacked || m.q.order.live != ready+unacked || m.q.readyBytes != m.bytes() {
		m.fatalf("ready %d, unacked %d, live %d, bytes %d, want %d, %d, %d", m.q.Ready(), m.q.Unacked(), m.q.order.live,
			m.q.readyBytes, ready, unacked, m.bytes())
	}
}

// consumerMood fills or drains a connection, or moves the shared window.
func (m *model) consumerMood() {
	if m.rng.IntN(2) == 0 {
		m.window.SetLimit(int32(m.rng.IntN(6)))
		for _, k := range m.consumers {
			m.q.SetWindow(&k.Consumer, k.Window)
		}
		return
	}
	if len(m.consumers) > 0 {
		k := m.consumers[m.rng.IntN(len(m.consumers))]
		if k.sink.full = !k.sink.full; !k.sink.full {
			m.q.Resume(&k.Consumer)
		}
	}
}

// end deletes the queue: every message must have been released exactly once.
func (m *model) end() {
	m.settle(1 << 20)
	ready := m.count(stateReady)
	if n := m.q.Delete(m.now); n != ready {
		m.fatalf("deleted %d of %d", n, ready)
	}
	m.host.dig(1 + m.rng.IntN(300))
	if n := m.host.arena.liveBlocks(); n != 0 || !m.host.arena.intact() {
		m.fatalf("%d blocks left, intact %v", n, m.host.arena.intact())
	}
}

// seeds is how many worlds a random test tries: RINGMQ_TEST_SEEDS asks for more.
func seeds(t *testing.T, usual uint64) uint64 {
	if text := os.Getenv("RINGMQ_TEST_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual / seedShare
}

// TestModel drives a queue and its model at random.
func TestModel(t *testing.T) {
	for seed := range seeds(t, 2500) {
		m := newModel(t, seed)
		for range 120 {
			m.step()
		}
		m.end()
	}
}
