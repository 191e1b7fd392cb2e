//ringmq:hot

package bench

import "errors"

var (
	errFrameEnd  = errors.New("frame does not end with 0xCE: the stream is out of step")
	errFrameSize = errors.New("frame is larger than the negotiated maximum")
	errFrameType = errors.New("frame of an unknown type")
	errFrameArgs = errors.New("method or header frame is too short for its arguments")
)

// confirm is one basic.ack or basic.nack from the broker.
type confirm struct {
	tag      uint64
	multiple bool
	nack     bool
}

// scanner walks over frames without decoding them. One goroutine owns it.
// The slices are reused: the owner empties them after each scan.
type scanner struct {
	frameMax int // octets; a frame beyond it is an error

	messages int64  // deliveries whose content is complete
	bytes    int64  // body octets of deliveries
	returns  int64  // basic.return seen
	tag      uint64 // delivery tag of the last complete delivery

	stamps     []uint64 // first 8 body octets of each delivery, when wantStamps
	confirms   []confirm
	other      []byte // last method frame that is none of the above (a copy)
	otherCount int
	wantStamps bool

	left       uint64 // body octets of the content under way still to come
	atStart    bool   // the next body frame is the first of its content
	delivering bool   // the content under way is a delivery, not a return
	pendingTag uint64
}

// scan consumes the whole frames in b and returns how many octets they take.
// The rest is an unfinished frame: the caller keeps it in front of what it
// reads next. It does not hold on to b.
func (s *scanner) scan(b []byte) (int, error) {
	at := 0
	for len(b)-at >= frameOverhead {
		size := int(be.Uint32(b[at+3:]))
		if size > s.frameMax {
			return at, errFrameSize
		}
		end := at + frameHeadSize + size
		if end >= len(b) {
			break
		}
		if b[end] != frameEnd {
			return at, errFrameEnd
		}
		payload := b[at+frameHeadSize : end]
		switch b[at] {
		case frameBody:
			s.body(payload)
		case frameMethod:
			if size < 4 || !s.method(payload, b[at:end+1]) {
				return at, errFrameArgs
			}
		case frameHeader:
			if size < 14 {
				return at, errFrameArgs
			}
			s.header(payload)
		case frameHeartbeat:
		default:
			return at, errFrameType
		}
		at = end + 1
	}
	return at, nil
}

// method handles one method frame and reports whether its arguments were whole.
func (s *scanner) method(payload, frame []byte) bool {
	id := be.Uint32(payload)
	if (id == basicAck || id == basicNack || id == basicDeliver) && len(payload) < 13 {
		return false
	}
	switch id {
	case basicDeliver:
		tagAt := 5 + int(payload[4])
		if len(payload) < tagAt+8 {
			return false
		}
		s.pendingTag = be.Uint64(payload[tagAt:])
		s.delivering = true
	case basicAck:
		s.confirms = append(s.confirms, confirm{be.Uint64(payload[4:]), payload[12]&1 != 0, false})
	case basicNack:
		s.confirms = append(s.confirms, confirm{be.Uint64(payload[4:]), payload[12]&1 != 0, true})
	case basicReturn:
		s.returns++
		s.delivering = false
	default:
		s.other = append(s.other[:0], frame...)
		s.otherCount++
	}
	return true
}

func (s *scanner) header(payload []byte) {
	s.left = be.Uint64(payload[4:])
	s.atStart = true
	if s.left == 0 {
		s.done()
	}
}

func (s *scanner) body(payload []byte) {
	if s.delivering {
		s.bytes += int64(len(payload))
		if s.atStart && s.wantStamps && len(payload) >= 8 {
			s.stamps = append(s.stamps, be.Uint64(payload))
		}
	}
	s.atStart = false
	s.left -= uint64(len(payload))
	if s.left == 0 {
		s.done()
	}
}

func (s *scanner) done() {
	if s.delivering {
		s.messages++
		s.tag = s.pendingTag
		s.delivering = false
	}
}
