package crash

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
)

// Kind says what an event is.
type Kind uint8

// The kinds of events. Which fields of Event they use stands beside them.
const (
	Published Kind = iota + 1 // ID, Route, Persistent, Hash, Size: about to be sent
	Confirmed                 // ID: the broker took it (confirm, or commit-ok of its transaction)
	Nacked                    // ID: the broker refused it
	Undone                    // ID: its transaction was rolled back, or ended without a commit: it must never come
	Attached                  // Queue, Client: a consumer is about to be there
	Left                      // Queue, Client: about to leave, and every delivery sent to it was read
	Gone                      // Queue, Client: it left or died, and deliveries may be unread
	Delivered                 // ID, Queue, Client, Redelivered, Hash, Size
	Acked                     // ID, Queue, Client: about to be sent
	Rejected                  // ID, Queue, Client: about to be sent, not to be requeued
	Requeued                  // ID, Queue, Client: about to be sent back
	Settled                   // Client: a later answer on its channel proves that what it sent was processed
	Committed                 // Client: as Settled, and a crash cannot undo it (commit-ok)
	Ending                    // the broker is about to be told to stop: it ends its connections in an order of its own
	Killed                    // the broker was killed; the next run begins
	Stopped                   // the broker ended in order; the next run begins
	Draining                  // everything that is left is consumed from here on, each queue by one consumer
)

var kindNames = [...]string{"", "published", "confirmed", "nacked", "undone", "attached", "left", "gone", "delivered", "acked",
	"rejected", "requeued", "settled", "committed", "ending", "killed", "stopped", "draining"}

// String is the kind in one word.
func (k Kind) String() string { return kindNames[k] }

// Event is one line of a history.
type Event struct {
	Kind        Kind
	Persistent  bool
	Redelivered bool
	Queue       uint16 // index of Queues; of Published: index of Routes
	Client      uint32 // consumer, from 1
	Size        uint32 // bytes of the body
	ID          uint64 // publisher<<publisherShift | number, 0 when it could not be read
	Hash        uint64 // fingerprint of body and properties
}

// publisherShift splits a message's id into its publisher and the number that it gave.
const publisherShift = 32

// Queue is what the check has to know of a queue.
type Queue struct {
	Name       string
	DeadLetter int // index of the queue that gets what is rejected here, -1 for none
}

// History is what all clients of one data folder did and saw, in one order. Its methods may be called on any
// goroutine.
type History struct {
	Seed   uint64 // of the bodies
	Queues []Queue
	Routes [][]int // lists of queues that a message goes to
	Events []Event
	Notes  []string // for each run, what is worth to know of it

	seen       [Draining + 1]atomic.Int64 // events of each kind
	mu         sync.Mutex
	publishers uint64
	clients    uint32
	hashSeed   maphash.Seed
}

// NewHistory returns an empty one.
func NewHistory(seed uint64) *History { return &History{Seed: seed, hashSeed: maphash.MakeSeed()} }

// AddQueue names a queue and returns its index. deadLetter is the index that its dead-letter target
// has, or will have, or -1. Call it before the clients start.
func (h *History) AddQueue(name string, deadLetter int) int {
	h.Queues = append(h.Queues, Queue{Name: name, DeadLetter: deadLetter})
	return len(h.Queues) - 1
}

// AddRoute names a set of queues that a publish goes to and returns its index. Call it before the clients start.
func (h *History) AddRoute(queues ...int) int {
	h.Routes = append(h.Routes, queues)
	return len(h.Routes) - 1
}

// Note says of the run that begins what the reader of a failure should know. Call it before the clients start.
func (h *History) Note(format string, args ...any) {
	h.Notes = append(h.Notes, fmt.Sprintf("run %d: ", len(h.Notes)+1)+fmt.Sprintf(format, args...))
}

// Add writes an event down.
func (h *History) Add(e Event) {
	h.mu.Lock()
	h.Events = append(h.Events, e)
	h.mu.Unlock()
	h.seen[e.Kind].Add(1)
}

// Seen is how many events of a kind there are.
func (h *History) Seen(k Kind) int64 { return h.seen[k].Load() }

// NewPublisher returns the id before the first of a new publisher: it counts up from there. A publisher is one
// channel, so that its ids rise in the order of publishing.
func (h *History) NewPublisher() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishers++
	return h.publishers << publisherShift
}

// NewClient returns the number of a new consumer.
func (h *History) NewClient() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	return h.clients
}

// MessageID is the id as a message carries it in its message-id property.
func MessageID(id uint64) string { return strconv.FormatUint(id, 16) }

// ParseID reads a message-id property, 0 if it is none of ours.
func ParseID(text string) uint64 {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// Body makes the content of a message: its id and the seed, as far as there is room, and then noise. Equal
// arguments give equal bytes, so that nobody has to keep it.
func (h *History) Body(id uint64, size int) []byte {
	b := make([]byte, 0, size+16)
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.LittleEndian.AppendUint64(b, h.Seed)
	noise := rand.NewPCG(id, h.Seed)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, noise.Uint64())
	}
	return b[:size]
}

// Fingerprint is the hash of everything that must arrive as it was sent.
func (h *History) Fingerprint(body []byte, properties string) uint64 {
	var sum maphash.Hash
	sum.SetSeed(h.hashSeed)
	_, _ = sum.Write(body)
	_, _ = sum.WriteString(properties)
	return sum.Sum64()
}

// Trace are the events of one message, for the reader of a failure.
func (h *History) Trace(id uint64) string {
	text, run, shown := "", 1, 0
	for i, e := range h.Events {
		switch {
		case e.Kind == Killed || e.Kind == Stopped:
			run++
			if text != "" {
				text += fmt.Sprintf("    #%d %v\n", i, e.Kind)
			}
		case e.ID == id && id != 0 && shown < 60:
			text += fmt.Sprintf("    #%d run %d: %s\n", i, run, h.describe(e))
			shown++
		}
	}
	return text
}

func (h *History) describe(e Event) string {
	switch e.Kind {
	case Published:
		mode := "transient"
		if e.Persistent {
			mode = "persistent"
		}
		return fmt.Sprintf("published to %s, %s, %d bytes", h.names(h.Routes[e.Queue]), mode, e.Size)
	case Confirmed, Nacked, Undone:
		return e.Kind.String()
	case Delivered:
		return fmt.Sprintf("delivered from %s to consumer %d, redelivered %v, %d bytes", h.Queues[e.Queue].Name, e.Client, e.Redelivered, e.Size)
	}
	return fmt.Sprintf("%v on %s by consumer %d", e.Kind, h.Queues[e.Queue].Name, e.Client)
}

func (h *History) names(queues []int) string {
	text := ""
	for i, q := range queues {
		if i > 0 {
			text += ", "
		}
		text += h.Queues[q].Name
	}
	return text
}
