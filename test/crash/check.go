package crash

import (
	"fmt"
	"slices"
	"strings"
)

// Rule names what a fault breaks. See the package's page.
type Rule string

// The rules.
const (
	RuleLost     Rule = "lost"
	RuleInvented Rule = "invented"
	RuleTwice    Rule = "twice"
	RuleFlagged  Rule = "flagged"
	RuleBack     Rule = "back"
	RuleOwners   Rule = "owners"
	RuleOrder    Rule = "order"
	RuleHistory  Rule = "history" // the history contradicts itself: the clients are at fault
)

// Fault is one broken rule.
type Fault struct {
	Rule  Rule
	ID    uint64
	Queue int
	Event int // index of the event that showed it, len(Events) for the end
	Text  string
	Other uint64 // the message that came first, of RuleOrder
}

// Report is the outcome of a check.
type Report struct {
	Counts Counts
	Faults []Fault
}

// Counts say what a history went through, for tests that must not be empty.
type Counts struct {
	Published, Confirmed, Nacked, Unanswered int
	Undone                                   int
	Delivered, Redelivered                   int // Redelivered: with the flag
	Acked, Rejected, Requeued, Drained       int
	Reborn                                   int // settled once, and back after a crash that undid it
	DeadLettered                             int // deliveries from dead-letter targets
	Vanished                                 int // transient copies that a restart took
	Kills, Stops                             int
}

// Add sums up the counts of several histories.
func (c *Counts) Add(o Counts) {
	c.Published += o.Published
	c.Confirmed += o.Confirmed
	c.Nacked += o.Nacked
	c.Unanswered += o.Unanswered
	c.Undone += o.Undone
	c.Delivered += o.Delivered
	c.Redelivered += o.Redelivered
	c.Acked += o.Acked
	c.Rejected += o.Rejected
	c.Requeued += o.Requeued
	c.Drained += o.Drained
	c.Reborn += o.Reborn
	c.DeadLettered += o.DeadLettered
	c.Vanished += o.Vanished
	c.Kills += o.Kills
	c.Stops += o.Stops
}

// message is what is known of one publish.
type message struct {
	at         int // index of its event
	run        int
	route      int
	persistent bool
	confirmed  bool
	answered   bool
	undone     bool
	hash       uint64
}

// copyKey is one message in one queue.
type copyKey struct {
	id    uint64
	queue int
}

// copyState is what is known of it.
type copyState struct {
	born      int // index of the event that may have put it there
	delivered int
	fresh     int // deliveries without the flag
	rejects   int // times that it was rejected here
	settle    Kind
	final     bool // settled, and nothing may undo it
	processed int  // the run in which it was settled for certain, 0 if in none
	holder    uint32
	holderRun int
}

// orderKey is what keeps its order: one publisher in one queue, as one consumer sees it.
type orderKey struct {
	publisher uint64
	queue     int
	client    uint32
}

// presence is who could have received deliveries of a queue without telling us.
type presence struct {
	attached int
	lastGone int // index of the last Gone, -1
}

// checker replays a history.
type checker struct {
	h        *History
	report   Report
	messages map[uint64]*message
	copies   map[copyKey]*copyState
	order    map[orderKey]uint64
	here     []presence
	targets  []bool               // which queues are dead-letter targets
	present  map[uint32]bool      // consumers that are attached
	pending  map[uint32][]copyKey // what each client has settled since it last knew
	clients  map[uint32]bool      // consumers whose channel is over
	ends     []Kind               // how each run ended, by its number; the current one is len(ends)
	killedAt int
	draining bool
	ending   bool
}

// Check replays the history and reports every fault.
func (h *History) Check() Report {
	c := &checker{h: h, messages: map[uint64]*message{}, copies: map[copyKey]*copyState{},
		order: map[orderKey]uint64{}, here: make([]presence, len(h.Queues)),
		targets: make([]bool, len(h.Queues)), present: map[uint32]bool{},
		pending: map[uint32][]copyKey{}, clients: map[uint32]bool{}, ends: []Kind{0}, killedAt: -1}
	for i := range c.here {
		c.here[i].lastGone = -1
		if target := h.Queues[i].DeadLetter; target >= 0 {
			c.targets[target] = true
		}
	}
	for i := range h.Events {
		c.step(i, &h.Events[i])
	}
	c.lost()
	for _, m := range c.messages {
		if !m.answered {
			c.report.Counts.Unanswered++
		}
	}
	return c.report
}

func (c *checker) fault(rule Rule, id uint64, queue, at int, format string, args ...any) {
	c.report.Faults = append(c.report.Faults, Fault{Rule: rule, ID: id, Queue: queue, Event: at, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) step(i int, e *Event) {
	switch e.Kind {
	case Published:
		if c.messages[e.ID] != nil {
			c.fault(RuleHistory, e.ID, 0, i, "published twice")
		}
		c.messages[e.ID] = &message{at: i, run: len(c.ends), route: int(e.Queue), persistent: e.Persistent, hash: e.Hash}
		c.report.Counts.Published++
	case Confirmed, Nacked, Undone:
		c.answer(i, e)
	case Attached, Left, Gone:
		c.move(i, e)
	case Delivered:
		c.deliver(i, e)
	case Acked, Rejected, Requeued:
		c.settle(i, e)
	case Settled, Committed:
		for _, key := range c.pending[e.Client] {
			s := c.copies[key]
			s.processed = len(c.ends)
			s.final = s.final || e.Kind == Committed
		}
		delete(c.pending, e.Client)
	case Ending:
		c.ending = true
	case Killed, Stopped:
		c.restart(i, e)
	case Draining:
		c.draining = true
	}
}

func (c *checker) answer(i int, e *Event) {
	m := c.messages[e.ID]
	if m == nil || m.answered {
		c.fault(RuleHistory, e.ID, 0, i, "answered, but not waiting for an answer")
		return
	}
	m.answered, m.confirmed, m.undone = true, e.Kind == Confirmed, e.Kind == Undone
	switch e.Kind {
	case Confirmed:
		c.report.Counts.Confirmed++
	case Nacked:
		c.report.Counts.Nacked++
	case Undone:
		c.report.Counts.Undone++
	}
}

func (c *checker) move(i int, e *Event) {
	p := &c.here[e.Queue]
	if e.Kind == Attached {
		p.attached++
		c.present[e.Client] = true
		return
	}
	if c.present[e.Client] {
		p.attached--
	}
	delete(c.present, e.Client)
	c.clients[e.Client] = true
	if e.Kind == Gone {
		p.lastGone = i
	}
}

func (c *checker) restart(i int, e *Event) {
	c.ends = append(c.ends, e.Kind)
	c.ending = false
	clear(c.pending)
	clear(c.clients)
	clear(c.present)
	for q := range c.here {
		if c.here[q].attached > 0 {
			c.here[q] = presence{lastGone: i}
		}
	}
	if e.Kind == Killed {
		c.report.Counts.Kills++
		c.killedAt = i
	} else {
		c.report.Counts.Stops++
	}
}

// deliver holds one delivery against everything known.
func (c *checker) deliver(i int, e *Event) {
	queue := int(e.Queue)
	c.report.Counts.Delivered++
	if e.Redelivered {
		c.report.Counts.Redelivered++
	}
	if c.draining {
		c.report.Counts.Drained++
	}
	s := c.known(i, e)
	if s == nil {
		return
	}
	// A target that got several copies cannot tell them apart.
	target := c.targets[queue]
	copies := 1
	if target {
		c.report.Counts.DeadLettered++
		copies = c.rejects(e.ID, queue)
	}
	if copies <= 1 {
		c.checkBack(i, e, s)
	}
	if !e.Redelivered && (s.fresh >= copies || s.delivered > 0 && copies <= 1) {
		c.fault(RuleTwice, e.ID, queue, i, "delivery %d does not say that it is one of several", s.delivered+1)
	}
	if e.Redelivered && s.delivered == 0 && !c.excused(e, s.born) {
		c.fault(RuleFlagged, e.ID, queue, i, "said to be delivered before, by nobody to nobody")
	}
	if !target {
		c.checkOrder(i, e, s)
	}
	if s.settle != 0 {
		c.report.Counts.Reborn++
	}
	s.delivered++
	if !e.Redelivered {
		s.fresh++
	}
	s.settle, s.processed = 0, 0
	s.holder, s.holderRun = e.Client, len(c.ends)
}

// known finds the copy that was delivered, and makes it when this is the first that is seen of it.
func (c *checker) known(i int, e *Event) *copyState {
	queue := int(e.Queue)
	m := c.messages[e.ID]
	if m == nil {
		c.fault(RuleInvented, e.ID, queue, i, "nobody published it")
		return nil
	}
	if m.undone {
		c.fault(RuleInvented, e.ID, queue, i, "its transaction was never committed")
		return nil
	}
	if m.hash != e.Hash {
		c.fault(RuleInvented, e.ID, queue, i, "arrived changed (%d bytes)%s", e.Size, c.whose(e.Hash))
		return nil
	}
	key := copyKey{e.ID, queue}
	s := c.copies[key]
	if s == nil && slices.Contains(c.h.Routes[m.route], queue) {
		s = &copyState{born: m.at}
		c.copies[key] = s
	}
	if s == nil {
		c.fault(RuleInvented, e.ID, queue, i, "came from a queue that it was never sent to")
	}
	return s
}

// whose says which message a fingerprint belongs to.
func (c *checker) whose(hash uint64) string {
	for id, m := range c.messages {
		if m.hash == hash {
			return fmt.Sprintf(": it is %x", id)
		}
	}
	return ""
}

// rejects counts how often a message was sent on its way to a dead-letter target.
func (c *checker) rejects(id uint64, target int) int {
	n := 0
	for q := range c.h.Queues {
		if c.h.Queues[q].DeadLetter == target {
			if s := c.copies[copyKey{id, q}]; s != nil {
				n += s.rejects
			}
		}
	}
	return n
}

// checkBack: what is settled for good, or held on a channel that is open, does not come.
func (c *checker) checkBack(i int, e *Event, s *copyState) {
	switch run := len(c.ends); {
	case s.final:
		c.fault(RuleBack, e.ID, int(e.Queue), i, "came back though a transaction had settled it")
	case s.processed == run:
		c.fault(RuleBack, e.ID, int(e.Queue), i, "came back though it was settled in this run")
	case s.processed > 0 && c.ends[s.processed] == Stopped:
		c.fault(RuleBack, e.ID, int(e.Queue), i, "came back though the run that settled it ended in order")
	case s.holder != 0 && s.holderRun == run && !c.clients[s.holder] && !c.ending:
		c.fault(RuleOwners, e.ID, int(e.Queue), i, "given to consumer %d while consumer %d has it", e.Client, s.holder)
	}
}

// excused says whether somebody may have received a message without writing it down, or the broker may not know.
func (c *checker) excused(e *Event, born int) bool {
	p := c.here[e.Queue]
	others := p.attached
	if c.present[e.Client] {
		others--
	}
	return c.killedAt > born || p.lastGone > born || others > 0
}

func (c *checker) checkOrder(i int, e *Event, s *copyState) {
	if s.delivered > 0 || e.Redelivered && !c.draining {
		return
	}
	key := orderKey{e.ID >> publisherShift, int(e.Queue), e.Client}
	if last := c.order[key]; last > e.ID {
		c.fault(RuleOrder, e.ID, int(e.Queue), i, "came after %x of the same publisher", last)
		c.report.Faults[len(c.report.Faults)-1].Other = last
	}
	c.order[key] = e.ID
}

func (c *checker) settle(i int, e *Event) {
	key := copyKey{e.ID, int(e.Queue)}
	s := c.copies[key]
	if s == nil {
		if c.messages[e.ID] != nil {
			c.fault(RuleHistory, e.ID, key.queue, i, "settled, but never delivered")
		}
		return
	}
	switch e.Kind {
	case Acked:
		c.report.Counts.Acked++
	case Requeued:
		c.report.Counts.Requeued++
		s.settle, s.holder = 0, 0
		return
	case Rejected:
		c.report.Counts.Rejected++
		s.rejects++
		if target := c.h.Queues[key.queue].DeadLetter; target >= 0 {
			there := c.copies[copyKey{e.ID, target}]
			if there == nil {
				there = &copyState{}
				c.copies[copyKey{e.ID, target}] = there
			}
			there.born = i
		}
	}
	s.settle = e.Kind
	c.pending[e.Client] = append(c.pending[e.Client], key)
}

// lost: everything confirmed and not settled must have come, and been settled, by now.
func (c *checker) lost() {
	end := len(c.h.Events)
	for id, m := range c.messages {
		for _, queue := range c.h.Routes[m.route] {
			if c.settled(id, queue) {
				continue
			}
			if !m.persistent && m.run != len(c.ends) {
				c.report.Counts.Vanished++
				continue
			}
			if m.confirmed {
				c.fault(RuleLost, id, queue, end, "confirmed, and gone from %s", c.h.Queues[queue].Name)
			}
		}
	}
}

func (c *checker) settled(id uint64, queue int) bool {
	s := c.copies[copyKey{id, queue}]
	switch {
	case s == nil:
		return false
	case s.settle == Acked:
		return true
	case s.settle == Rejected:
		target := c.h.Queues[queue].DeadLetter
		return target < 0 || c.settled(id, target)
	}
	return false
}

// faultsShown bounds the text of a report: faults come in thousands or not at all.
const faultsShown = 8

// Error tells the first faults with the story of their messages, "" when there are none.
func (h *History) Error(r Report) string {
	if len(r.Faults) == 0 {
		return ""
	}
	byRule := map[Rule]int{}
	for _, f := range r.Faults {
		byRule[f.Rule]++
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d faults: %v\n", len(r.Faults), byRule)
	for _, note := range h.Notes {
		fmt.Fprintf(&text, "  %s\n", note)
	}
	for _, f := range r.Faults[:min(len(r.Faults), faultsShown)] {
		fmt.Fprintf(&text, "  %s: message %x, queue %s, event #%d: %s\n%s", f.Rule, f.ID, h.Queues[f.Queue].Name, f.Event, f.Text, h.Trace(f.ID))
		if f.Other != 0 {
			fmt.Fprintf(&text, "  %x:\n%s", f.Other, h.Trace(f.Other))
		}
	}
	return text.String()
}
