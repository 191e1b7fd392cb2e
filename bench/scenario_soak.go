package bench

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
)

const (
	soakConnections = 16
	soakMessages    = 1000000
	soakWindow      = 1000
	soakSlotBits    = 48 // low bits of a stamp; the producer is above
)

// soak: many messages through many connections, every one accounted for. The
// body of a message carries its producer and number; a bit per message shows
// losses and duplicates.
func soak(ctx context.Context, t *target, o *Options) (*Result, error) {
	messages := o.messages(soakMessages)
	connections := max(orDefault(o.Connections, soakConnections), 2)
	own := *o
	own.Confirm = orDefault(o.Confirm, soakWindow)
	if own.AckEvery == "" && !own.AutoAck {
		own.ackEvery = ackPerRead
	}
	queues := o.queues("bench-soak-{1..4}")
	spec := flowSpec{
		queues: queues, keys: queues, sizes: stampSizes(o.sizes(64)), stamped: true,
		producers: orDefault(o.Producers, connections/2), consumers: max(orUnset(o.Consumers, connections-connections/2), 1),
	}
	f, err := newFlow(ctx, t, &own, spec)
	if err != nil {
		return nil, err
	}
	defer f.close()
	book := newSoakBook(messages, len(f.producers))
	for i, p := range f.producers {
		p.quota, p.stampOf = book.quota(i), book.stamper(i)
	}
	for _, k := range f.consumers {
		k.onStamps = book.seen
	}
	before, err := f.runSoak(ctx, messages)
	if err != nil {
		return nil, err
	}
	after := f.tally()
	r := &Result{Settings: fmt.Sprintf("%d messages, %s", messages, describeFlow(&own, spec))}
	r.add("lost", "msg", float64(book.missing()), lowerIsBetter)
	r.add("delivered twice", "msg", float64(book.twice.Load()), lowerIsBetter)
	r.add("never sent", "msg", float64(book.foreign.Load()), lowerIsBetter)
	f.rates(r, before, after)
	f.stop()
	f.confirmLatency().addTo(r, "confirm")
	addCounters(r, t)
	return r, book.verdict(messages)
}

// runSoak lets the producers use up their quotas and waits for the last
// delivery, for as long as anything moves.
func (f *flow) runSoak(ctx context.Context, messages int64) (before tally, err error) {
	before = f.tally()
	f.from.Store(nowNS())
	f.start()
	_, err = f.await(ctx, messages, messages)
	return before, err // of a stall the book tells what is missing
}

// soakBook holds one bit per message.
type soakBook struct {
	per     int64 // messages per producer, the last producer may have fewer
	total   int64
	bits    []atomic.Uint64
	twice   atomic.Int64
	foreign atomic.Int64 // deliveries that nobody published
}

func newSoakBook(messages int64, producers int) *soakBook {
	per := (messages + int64(producers) - 1) / int64(producers)
	return &soakBook{per: per, total: messages, bits: make([]atomic.Uint64, (messages+63)/64)}
}

// quota is how many messages producer i publishes.
func (b *soakBook) quota(i int) int64 {
	return min(max(b.total-int64(i)*b.per, 0), b.per)
}

// stamper gives message n of producer i its stamp.
func (b *soakBook) stamper(i int) func(n int64) uint64 {
	return func(n int64) uint64 { return uint64(i)<<soakSlotBits | uint64(n) }
}

// seen marks deliveries. Any number of consumers call it at once.
func (b *soakBook) seen(stamps []uint64) {
	for _, s := range stamps {
		producer, n := int64(s>>soakSlotBits), int64(s&(1<<soakSlotBits-1))
		at := producer*b.per + n
		if n >= b.per || at >= b.total {
			b.foreign.Add(1)
			continue
		}
		bit := uint64(1) << (at % 64)
		if b.bits[at/64].Or(bit)&bit != 0 {
			b.twice.Add(1)
		}
	}
}

func (b *soakBook) missing() int64 {
	missing := int64(0)
	for at := range b.total {
		if b.bits[at/64].Load()&(1<<(at%64)) == 0 {
			missing++
		}
	}
	return missing
}

// verdict is nil when each message came exactly once.
func (b *soakBook) verdict(messages int64) error {
	missing, twice, foreign := b.missing(), b.twice.Load(), b.foreign.Load()
	if missing == 0 && twice == 0 && foreign == 0 {
		return nil
	}
	return fmt.Errorf("soak: of %d messages %d never came, %d came again and %d were never sent", messages, missing, twice, foreign)
}

// addCounters notes the server's own counts, if it has a metrics page.
func addCounters(r *Result, t *target) {
	if t.counters == "" {
		return
	}
	m, err := readMetrics(t.counters)
	if err != nil {
		r.note("counters: %v", err)
		return
	}
	var lines []string
	for name, value := range m.values {
		if strings.HasSuffix(name, "_messages_total") || strings.Contains(name, "_messages_") && strings.HasSuffix(name, "_total") {
			lines = append(lines, fmt.Sprintf("%s %s", name, formatNumber(value)))
		}
	}
	sort.Strings(lines)
	for _, line := range lines {
		r.note("server counts %s", line)
	}
}
