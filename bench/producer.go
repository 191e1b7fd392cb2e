package bench

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// counter is written by one goroutine and read by the measuring one; the
// padding keeps two of them off one cache line.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// producer publishes on one connection.
type producer struct {
	c     *conn
	flow  *flow
	batch *batch
	next  int // message of the batch to send next

	sched   schedule // when the load is an open loop
	paced   bool
	stamped bool                 // put the intended time into each body
	window  int                  // outstanding confirms allowed; 0: no confirms
	quota   int64                // messages in total; -1: no end
	stampOf func(n int64) uint64 // soak: stamp of message n, instead of the time

	published counter
	confirmed counter
	nacked    counter

	confirms *histogram // publish to confirm, measured window only
	pacing   *histogram // lateness of sends, measured window only
	spun     int64      // ns of busy waiting, read after the end
}

// run publishes until the flow stops.
func (p *producer) run() error {
	var err error
	switch {
	case p.window > 0:
		err = p.runConfirmed()
	case p.paced:
		err = p.runPaced()
	default:
		err = p.runFlat()
	}
	return p.explain(err)
}

// watch reads what the broker says to a producer that has no reason to read:
// without it a refused publish would look like a very fast broker.
func (p *producer) watch() error {
	for {
		frame, err := p.c.readFrame()
		if err == nil && frame[0] == frameMethod && len(frame) >= frameOverhead+4 {
			err = closeError(frame)
		}
		if p.flow.stopped.Load() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("producer: %w", err)
		}
	}
}

// explain words a failure. A failed write is the broker's doing, and what it
// said before is still to be read: by the watcher, or here.
func (p *producer) explain(err error) error {
	if err == nil || p.flow.stopped.Load() {
		return nil
	}
	if p.window == 0 {
		// Long enough for the watcher, whose report wins, to read it.
		time.Sleep(200 * time.Millisecond)
		return fmt.Errorf("producer: %w", err)
	}
	_ = p.c.setReadTimeout(200 * time.Millisecond)
	if _, closeErr := p.c.await(0); closeErr != nil && !errors.Is(closeErr, errClosed) {
		return fmt.Errorf("producer: %w (%w)", err, closeErr)
	}
	return fmt.Errorf("producer: %w", err)
}

// runFlat writes whole batches as fast as the broker reads them.
func (p *producer) runFlat() error {
	n := int64(p.batch.count())
	for !p.flow.quiet.Load() {
		if p.flow.lagging() {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		if err := p.c.write(p.batch.buf); err != nil {
			return err
		}
		p.published.Add(n)
	}
	return nil
}

// runPaced sends each message, or burst, at its time.
func (p *producer) runPaced() error {
	pacer := newPacer(time.Duration(p.flow.o.SpinMax))
	defer pacer.end()
	var sent int64
	for !p.flow.quiet.Load() {
		intended := p.sched.at(sent)
		now := pacer.wait(intended)
		if p.flow.measuring(intended) {
			p.pacing.record(now-intended, 1)
		}
		if err := p.sendDue(&sent, p.sched.due(now)); err != nil {
			return err
		}
	}
	p.spun = pacer.spun
	return nil
}

// sendDue publishes up to message number due, in as few writes as the batch
// allows, each message stamped with its own intended time.
func (p *producer) sendDue(sent *int64, due int64) error {
	for *sent < due {
		buf, n := p.batch.slice(p.next, int(min(due-*sent, int64(p.batch.count()))))
		p.stampBodies(*sent, n)
		if err := p.c.write(buf); err != nil {
			return err
		}
		p.advance(n)
		*sent += int64(n)
	}
	return nil
}

func (p *producer) advance(n int) {
	p.next = (p.next + n) % p.batch.count()
	p.published.Add(int64(n))
}

// runConfirmed keeps at most window publishes outstanding: write what the
// window allows, read once, repeat. With a rate the window only caps.
func (p *producer) runConfirmed() error {
	w := newConfirmWindow(p.window)
	scan := scanner{frameMax: p.c.frameMax}
	var pace *pacer
	if p.paced {
		pace = newPacer(time.Duration(p.flow.o.SpinMax))
		defer pace.end()
	}
	for !p.flow.quiet.Load() {
		free := w.free()
		if p.quota >= 0 {
			free = int(min(int64(free), p.quota-w.sent))
		}
		if pace != nil {
			free = min(free, p.paceConfirmed(pace, w))
		}
		if err := p.publishConfirmed(w, free); err != nil {
			return err
		}
		if w.sent == w.low {
			if p.quota >= 0 {
				return nil // all sent and settled
			}
			continue
		}
		// An open loop must not block on a confirm while it may send.
		if pace != nil && w.free() > 0 && !p.c.readable() {
			continue
		}
		if err := p.readConfirms(&scan, w); err != nil {
			return err
		}
	}
	return nil
}

// paceConfirmed waits for the next send time and returns how many are due.
func (p *producer) paceConfirmed(pace *pacer, w *confirmWindow) int {
	intended := p.sched.at(w.sent)
	now := nowNS()
	if w.free() > 0 {
		now = pace.wait(intended)
		if p.flow.measuring(intended) {
			p.pacing.record(now-intended, 1)
		}
	}
	p.spun = pace.spun
	return int(p.sched.due(now) - w.sent)
}

// publishConfirmed writes n messages and enters them in the window.
func (p *producer) publishConfirmed(w *confirmWindow, n int) error {
	for n > 0 {
		buf, got := p.batch.slice(p.next, n)
		p.stampBodies(w.sent, got)
		// The clock is read before the write: a confirm cannot be timed from
		// after the broker has had the message.
		w.publish(got, nowNS())
		if err := p.c.write(buf); err != nil {
			return err
		}
		p.advance(got)
		n -= got
	}
	return nil
}

// stampBodies puts their stamps into the next n messages, number from on.
func (p *producer) stampBodies(from int64, n int) {
	if !p.stamped {
		return
	}
	for i := range n {
		number := from + int64(i)
		if p.stampOf != nil {
			p.batch.stamp(p.next+i, p.stampOf(number))
		} else {
			p.batch.stamp(p.next+i, uint64(p.sched.at(number)))
		}
	}
}

// readConfirms reads once and settles what came.
func (p *producer) readConfirms(scan *scanner, w *confirmWindow) error {
	if err := p.c.fill(); err != nil {
		return err
	}
	n, err := scan.scan(p.c.in[p.c.start:p.c.end])
	p.c.start += n
	if err != nil {
		return err
	}
	if scan.otherCount > 0 {
		scan.otherCount = 0
		if err := closeError(scan.other); err != nil {
			return err
		}
	}
	now := nowNS()
	var settled, nacked int64
	for _, c := range scan.confirms {
		got := w.settle(c, func(sentAt int64) {
			if p.flow.measuring(now) {
				p.confirms.record(now-sentAt, 1)
			}
		})
		settled += got
		if c.nack {
			nacked += got
		}
	}
	scan.confirms = scan.confirms[:0]
	p.confirmed.Add(settled - nacked)
	p.nacked.Add(nacked)
	return nil
}

// confirmWindow tracks outstanding publishes of a channel by sequence number,
// from 1 on as the broker numbers them. Its span, not only its count, is
// limited, so a slot is never reused before it is settled.
type confirmWindow struct {
	sentAt []int64 // by sequence number modulo its length; 0: settled
	mask   int64
	window int64
	sent   int64 // highest sequence number published
	low    int64 // all up to here are settled
}

func newConfirmWindow(window int) *confirmWindow {
	size := 1
	for size < window {
		size *= 2
	}
	return &confirmWindow{sentAt: make([]int64, size), mask: int64(size - 1), window: int64(window)}
}

func (w *confirmWindow) free() int { return int(w.window - (w.sent - w.low)) }

func (w *confirmWindow) publish(n int, at int64) {
	for range n {
		w.sent++
		w.sentAt[w.sent&w.mask] = max(at, 1)
	}
}

// settle applies one confirm and returns how many publishes it settled, each
// of whose send times it shows to seen. Unknown numbers settle nothing.
func (w *confirmWindow) settle(c confirm, seen func(sentAt int64)) int64 {
	tag := int64(c.tag)
	if c.tag == 0 && c.multiple {
		tag = w.sent
	}
	if tag <= w.low || tag > w.sent {
		return 0
	}
	from := tag
	if c.multiple {
		from = w.low + 1
	}
	var settled int64
	for i := from; i <= tag; i++ {
		if at := w.sentAt[i&w.mask]; at != 0 {
			w.sentAt[i&w.mask] = 0
			settled++
			seen(at)
		}
	}
	for w.low < w.sent && w.sentAt[(w.low+1)&w.mask] == 0 {
		w.low++
	}
	return settled
}
