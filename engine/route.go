package engine

import (
	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// routeScratch is the memory that routing works in; one for each shard.
type routeScratch struct {
	dests  []exchange.Dest
	queues []*queue.Queue
	walk   []*Exchange
	seen   map[*queue.Queue]struct{}
	walked map[*Exchange]struct{} // of walk, once it is long
}

// RouteAll is Route for a message whose sender named more keys than the one it
// published with (SSD-01). What it finds is not remembered.
func (s *Shard) RouteAll(v *VHost, x *Exchange, key []byte, more [][]byte, h core.Fields) []*queue.Queue {
	queues, _ := v.route(x, key, more, h, &s.scratch)
	return queues
}

// route finds the queues of a message (BIND-05, E2E-01, ALT-01). more are further
// keys, which count in every exchange on the way as the first does (SSD-02). The
// result is valid until the next call. keyed tells that it depends on nothing but
// the exchange and the keys, so that it may be remembered.
func (v *VHost) route(x *Exchange, key []byte, more [][]byte, h core.Fields, sc *routeScratch) (out []*queue.Queue, keyed bool) {
	sc.queues = sc.queues[:0]
	if x.Name == "" {
		v.routeDefault(key, more, sc)
		return sc.queues, true
	}
	keyed = true
	sc.walk = append(sc.walk[:0], x)
	from := 0 // of walk: alternate exchanges of those before were added
	for i := 0; i < len(sc.walk); i++ {
		if held := sc.walk[i].held; held != nil {
			keyed = false // the next message may have no delay, or another
			if delayOf(h) > 0 {
				sc.addQueue(held, i > 0)
				continue
			}
		}
		m := *sc.walk[i].matcher.Load()
		keyed = keyed && !m.UsesHeaders()
		sc.dests = m.Match(key, h, sc.dests[:0])
		if len(more) > 0 && m.UsesKey() && !sc.walk[i].Routes.Chooses() {
			for _, k := range more {
				sc.dests = m.Match(k, h, sc.dests)
			}
		}
		for _, d := range sc.dests {
			switch d := d.(type) {
			case *queue.Queue:
				sc.addQueue(d, i > 0)
			case *Exchange:
				sc.addExchange(d)
			}
		}
		// An alternate exchange takes what its exchange matched to nothing, and
		// what reached no queue at all.
		if len(sc.dests) == 0 {
			v.alternate(sc.walk[i], sc)
		}
		if i == len(sc.walk)-1 && len(sc.queues) == 0 {
			from = v.alternates(sc, from)
		}
	}
	clear(sc.seen)
	clear(sc.walked)
	return sc.queues, keyed
}

// routeDefault is the default exchange: keys are names of queues (QUE-13).
func (v *VHost) routeDefault(key []byte, more [][]byte, sc *routeScratch) {
	if q := v.Queue(key); q != nil {
		sc.queues = append(sc.queues, q)
	}
	for _, k := range more {
		if q := v.Queue(k); q != nil {
			sc.addQueue(q, true)
		}
	}
	clear(sc.seen)
}

// alternates adds the alternate exchange of each exchange that was walked since
// from, and returns where the next call goes on: a long chain costs no more than
// its length.
func (v *VHost) alternates(sc *routeScratch, from int) (next int) {
	walked := sc.walk[from:]
	next = len(sc.walk)
	for _, x := range walked {
		v.alternate(x, sc)
	}
	return next
}

func (v *VHost) alternate(x *Exchange, sc *routeScratch) {
	name := x.alternate.Load()
	if name == nil {
		return
	}
	if ae, ok := v.exchanges.Load().Get(*name); ok {
		sc.addExchange(ae)
	}
}

// scanMax is up to how many elements a look through a list is faster than a map.
const scanMax = 32

func (sc *routeScratch) addExchange(x *Exchange) {
	if len(sc.walk) <= scanMax {
		for _, known := range sc.walk {
			if known == x {
				return
			}
		}
	} else {
		if sc.walked == nil {
			sc.walked = map[*Exchange]struct{}{}
		}
		if len(sc.walked) == 0 {
			for _, known := range sc.walk {
				sc.walked[known] = struct{}{}
			}
		}
		if _, ok := sc.walked[x]; ok {
			return
		}
		sc.walked[x] = struct{}{}
	}
	sc.walk = append(sc.walk, x)
}

// addQueue adds a queue once. Results of one exchange are distinct already.
func (sc *routeScratch) addQueue(q *queue.Queue, check bool) {
	if check {
		if len(sc.queues) <= scanMax {
			for _, known := range sc.queues {
				if known == q {
					return
				}
			}
		} else {
			if sc.seen == nil {
				sc.seen = map[*queue.Queue]struct{}{}
			}
			if len(sc.seen) == 0 {
				for _, known := range sc.queues {
					sc.seen[known] = struct{}{}
				}
			}
			if _, ok := sc.seen[q]; ok {
				return
			}
			sc.seen[q] = struct{}{}
		}
	}
	sc.queues = append(sc.queues, q)
}
