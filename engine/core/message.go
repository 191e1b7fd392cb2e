//ringmq:hot

package core

import (
	"sync/atomic"
	"unsafe"
)

// Arena is the off-heap memory of one loop. Alloc is called by the owner loop
// only; Free accepts a block of any loop's arena. Alloc returns nil when the
// operating system refuses memory.
type Arena interface {
	Alloc(n int) unsafe.Pointer
	Free(p unsafe.Pointer)
}

// Flags of a message.
const (
	// FlagPersistent marks delivery mode 2.
	FlagPersistent uint16 = 1 << iota
	// FlagExpires says that TTL holds the message's own time to live.
	FlagExpires
)

// Message is the fixed head of a stored message; the bytes follow it in the
// same block. It lives off the Go heap: hold it by pointer only, never copy it.
type Message struct {
	refs     atomic.Int32
	routeLen uint16 // exchange and key shortstrs together
	exchLen  uint8
	Encoding uint8 // which codec wrote the protocol header: see Encoding constants
	headLen  uint32
	bodyLen  uint32
	filled   uint32 // body bytes received so far
	Flags    uint16
	Priority uint8
	_        uint8
	TTL      int64 // milliseconds, valid with FlagExpires
	Arrival  int64 // milliseconds since 1970, 0 until it is given to its queues
	_        [16]byte
}

// Encodings of the protocol header.
const (
	// Encoding091 is an AMQP 0-9-1 content header frame's payload.
	Encoding091 uint8 = 0
)

const messageHeadSize = int(unsafe.Sizeof(Message{}))

// NewMessage allocates a message with one reference and room for bodySize
// bytes of body, to be filled by AppendBody. exchange and key are at most 255
// bytes each; all inputs are copied. It returns nil when memory is refused.
func NewMessage(a Arena, exchange, key, head []byte, bodySize int) *Message {
	routeLen := 2 + len(exchange) + len(key)
	p := a.Alloc(messageHeadSize + routeLen + len(head) + bodySize)
	if p == nil {
		return nil
	}
	m := (*Message)(p)
	m.refs.Store(1)
	m.routeLen = uint16(routeLen)
	m.exchLen = uint8(len(exchange))
	m.Encoding = Encoding091
	m.headLen = uint32(len(head))
	m.bodyLen = uint32(bodySize)
	m.filled = 0
	m.Flags = 0
	m.Priority = 0
	m.TTL = 0
	m.Arrival = 0
	b := unsafe.Slice((*byte)(unsafe.Add(p, messageHeadSize)), routeLen+len(head))
	b[0] = uint8(len(exchange))
	copy(b[1:], exchange)
	b[1+len(exchange)] = uint8(len(key))
	copy(b[2+len(exchange):], key)
	copy(b[routeLen:], head)
	return m
}

func (m *Message) at(offset, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(m), messageHeadSize+offset)), n)
}

// AppendBody copies the next part of the body and reports whether the body is
// complete. The caller never passes more than Missing bytes.
func (m *Message) AppendBody(p []byte) (complete bool) {
	copy(m.at(int(m.routeLen)+int(m.headLen)+int(m.filled), len(p)), p)
	m.filled += uint32(len(p))
	return m.filled == m.bodyLen
}

// Missing is the number of body bytes that AppendBody still expects.
func (m *Message) Missing() int { return int(m.bodyLen - m.filled) }

// Route is the exchange and the routing key, each as a length octet and bytes.
func (m *Message) Route() []byte { return m.at(0, int(m.routeLen)) }

// Exchange is the name of the exchange that the message was published to.
func (m *Message) Exchange() []byte { return m.at(1, int(m.exchLen)) }

// Key is the routing key.
func (m *Message) Key() []byte {
	return m.at(2+int(m.exchLen), int(m.routeLen)-2-int(m.exchLen))
}

// Head is the protocol header in the form that Encoding names.
func (m *Message) Head() []byte { return m.at(int(m.routeLen), int(m.headLen)) }

// Body is the whole body.
func (m *Message) Body() []byte { return m.at(int(m.routeLen)+int(m.headLen), int(m.bodyLen)) }

// BodyLen is the size of the body in bytes.
func (m *Message) BodyLen() int { return int(m.bodyLen) }

// Size is what the message costs in memory, in bytes, without the allocator's
// own header.
func (m *Message) Size() int {
	return messageHeadSize + int(m.routeLen) + int(m.headLen) + int(m.bodyLen)
}

// Persistent reports delivery mode 2.
func (m *Message) Persistent() bool { return m.Flags&FlagPersistent != 0 }

// AddRef takes n more references.
func (m *Message) AddRef(n int32) { m.refs.Add(n) }

// Refs is the current number of references, for assertions in tests.
func (m *Message) Refs() int32 { return m.refs.Load() }

// Release gives one reference back; the last one frees the block. a is the
// arena of the loop that calls, which need not be the one that allocated.
func (m *Message) Release(a Arena) {
	// A sole owner needs no read-modify-write: nobody else can see the block.
	if m.refs.Load() == 1 {
		m.refs.Store(0)
		a.Free(unsafe.Pointer(m))
		return
	}
	n := m.refs.Add(-1)
	if n == 0 {
		a.Free(unsafe.Pointer(m))
		return
	}
	if n < 0 {
		panic("core: message released more often than referenced")
	}
}

// Token is the message as the opaque token that a shared write carries.
func (m *Message) Token() unsafe.Pointer { return unsafe.Pointer(m) }

// FromToken is the inverse of Token.
func FromToken(p unsafe.Pointer) *Message { return (*Message)(p) }
