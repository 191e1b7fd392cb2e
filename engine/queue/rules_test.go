package queue

import "testing"

// TTL-01, POL-04: a time to live that a policy sets applies to what is there already, from its arrival on, and goes
// with the policy.
func TestSetRulesTTL(t *testing.T) {
	for _, count := range []int{1, 3, 2*retimeBatch + 5} {
		b := newBench(t, defaults())
		b.fakeHost.clock = b.now
		for range count {
			m := b.message(1, 0)
			m.Arrival = b.now / millisecond
			b.publishOne(m)
		}
		b.Settle(b.now, 10)
		b.now += 50 * millisecond
		b.fakeHost.clock = b.now
		r := b.Rules
		r.TTL = 60
		b.SetRules(r, b.now)
		rounds := 0
		for ; b.retiming; rounds++ {
			b.Settle(b.now, 10)
		}
		if want := (count-1)/retimeBatch + 1; rounds != want {
			t.Errorf("%d entries took %d rounds, want %d", count, rounds, want)
		}
		if b.Ready() != count || b.NextDue() > b.now+11*millisecond || b.NextDue() < b.now+9*millisecond {
			t.Fatalf("ready %d, next due in %d ns", b.Ready(), b.NextDue()-b.now)
		}
		r.TTL = -1
		b.SetRules(r, b.now)
		for b.retiming {
			b.Settle(b.now, 10)
		}
		b.now += 50 * millisecond
		b.fakeHost.clock = b.now
		for range count/1000 + 1 {
			b.Settle(b.now, 10)
		}
		if b.Settle(b.now, 10); b.Ready() != count || b.Expired != 0 {
			t.Fatalf("after the policy went: ready %d, expired %d", b.Ready(), b.Expired)
		}
		r.TTL = 20
		b.SetRules(r, b.now)
		for b.retiming || b.overdue(b.now) {
			b.Settle(b.now, 10)
		}
		if b.Ready() != 0 || b.Expired != uint64(count) {
			t.Fatalf("overdue by the new rule: ready %d, expired %d", b.Ready(), b.Expired)
		}
		b.Delete(b.now)
		b.dig(2 * count)
	}
}

// POL-04: a lower limit trims at once.
func TestSetRulesLimit(t *testing.T) {
	b := newBench(t, defaults())
	for range 10 {
		b.publish(1)
	}
	r := b.Rules
	r.MaxLength = 4
	b.SetRules(r, b.now)
	b.Settle(b.now, 10)
	if b.Ready() != 4 || b.Dropped != 6 {
		t.Fatalf("ready %d, dropped %d", b.Ready(), b.Dropped)
	}
	r.MaxLength = -1
	b.SetRules(r, b.now)
	for range 3 {
		b.publish(1)
	}
	if b.Settle(b.now, 10); b.Ready() != 7 {
		t.Fatalf("ready %d without the limit", b.Ready())
	}
	b.end()
}
