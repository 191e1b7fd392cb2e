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

	shape shape // of the last delivery, for the fast path

	left       uint64 // body octets of the content under way still to come
	atStart    bool   // the next body frame is the first of its content
	delivering bool   // the content under way is a delivery, not a return
	pendingTag uint64
}

// scan consumes the whole frames in b and returns how many octets they take.
// The rest is an unfinished frame: the caller keeps it in front of what it
// reads next. It does not hold on to b.
func (s *scanner) scan(b []byte) (int, error) {
	at, begun := 0, -1 // begun: where the delivery under way starts, if in b
	for len(b)-at >= frameOverhead {
		if s.shape.total > 0 && s.left == 0 && !s.delivering {
			at = s.repeat(b, at)
			if len(b)-at < frameOverhead {
				break
			}
		}
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
			whole := s.atStart && s.delivering && begun >= 0
			s.body(payload)
			if whole && s.left == 0 {
				s.shape.learn(b[begun : end+1])
			}
			begun = -1
		case frameMethod:
			begun = at
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

// shape is the layout of a delivery of three frames. Most streams repeat one
// shape, and comparing the frame heads with it is several times cheaper than
// parsing them.
type shape struct {
	total    int    // octets of the whole delivery; 0: none known
	headerAt int    // offset of the content header frame
	bodyAt   int    // offset of the body frame
	method   uint64 // first eight octets of each frame
	header   uint64
	body     uint64 // first seven octets, in the high bits
}

// learn takes the layout of one whole delivery with a single body frame.
func (p *shape) learn(d []byte) {
	headerAt := frameOverhead + int(be.Uint32(d[3:]))
	bodyAt := headerAt + frameOverhead + int(be.Uint32(d[headerAt+3:]))
	if bodyAt+frameOverhead > len(d) || bodyAt+frameOverhead+int(be.Uint32(d[bodyAt+3:])) != len(d) {
		p.total = 0 // other frames are in between
		return
	}
	p.total, p.headerAt, p.bodyAt = len(d), headerAt, bodyAt
	p.method, p.header, p.body = be.Uint64(d), be.Uint64(d[headerAt:]), be.Uint64(d[bodyAt:])&^0xff
}

// repeat consumes deliveries of the known shape from at on and returns where
// they end. Everything that the slow path checks is checked here.
func (s *scanner) repeat(b []byte, at int) int {
	p := &s.shape
	size := p.total - p.bodyAt - frameOverhead
	for len(b)-at >= p.total {
		d := b[at : at+p.total]
		tagAt := frameHeadSize + 5 + int(d[frameHeadSize+4])
		if be.Uint64(d) != p.method || be.Uint32(d[frameHeadSize:]) != basicDeliver ||
			be.Uint64(d[p.headerAt:]) != p.header || be.Uint64(d[p.headerAt+frameHeadSize+4:]) != uint64(size) ||
			be.Uint64(d[p.bodyAt:])&^0xff != p.body || tagAt+8 >= p.headerAt ||
			d[p.headerAt-1] != frameEnd || d[p.bodyAt-1] != frameEnd || d[p.total-1] != frameEnd {
			return at
		}
		if s.wantStamps && size >= 8 {
			s.stamps = append(s.stamps, be.Uint64(d[p.bodyAt+frameHeadSize:]))
		}
		s.tag = be.Uint64(d[tagAt:])
		s.messages++
		s.bytes += int64(size)
		at += p.total
	}
	return at
}
