package engine

import "testing"

// TestCompactFanout: a message whose body's queue is done with it, and that lives on in others, weighs as much as
// before once it was moved. Else every segment looks empty for ever, and is copied for ever: the log had no room left
// for anything else.
func TestCompactFanout(t *testing.T) {
	const messages = 300
	p := newStoredPath(t, 3, false, nil)
	p.body = make([]byte, 20_000)
	for range messages {
		m := p.message()
		m.AddRef(2)
		pending, refused, _ := p.PublishAll(p.queues, m, p, 1)
		if pending != 3 || refused {
			t.Fatalf("%d answers to come, refused %v", pending, refused)
		}
		p.turns(1)
	}
	p.turns(50)
	if p.settled != 3*messages || p.refused != 0 {
		t.Fatalf("%d answers, %d refused", p.settled, p.refused)
	}
	for i, q := range p.queues[:2] {
		if n := q.Purge(p.w.now); n != messages {
			t.Fatalf("queue %d had %d messages", i, n)
		}
	}
	moved, quiet := uint64(0), 0
	for n := 0; quiet < 40; n++ {
		if n == 5000 {
			t.Fatalf("still copying, %d records so far", p.wal().Stats().MovedRecords)
		}
		p.w.now += int64(keepEvery)
		p.store.keep(p.w.now)
		p.turns(3)
		if quiet++; p.wal().Stats().MovedRecords != moved {
			moved, quiet = p.wal().Stats().MovedRecords, 0
		}
	}
	if moved > messages {
		t.Errorf("%d records were copied for %d messages", moved, messages)
	}
	p.w.free()
}
