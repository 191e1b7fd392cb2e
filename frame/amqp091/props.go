//ringmq:hot

package amqp091

import "encoding/binary"

// Property flags, in the order of the property list.
const (
	FlagContentType     uint16 = 1 << 15
	FlagContentEncoding uint16 = 1 << 14
	FlagHeaders         uint16 = 1 << 13
	FlagDeliveryMode    uint16 = 1 << 12
	FlagPriority        uint16 = 1 << 11
	FlagCorrelationID   uint16 = 1 << 10
	FlagReplyTo         uint16 = 1 << 9
	FlagExpiration      uint16 = 1 << 8
	FlagMessageID       uint16 = 1 << 7
	FlagTimestamp       uint16 = 1 << 6
	FlagType            uint16 = 1 << 5
	FlagUserID          uint16 = 1 << 4
	FlagAppID           uint16 = 1 << 3
	FlagClusterID       uint16 = 1 << 2
)

// flagContinuation announces another flag word. It is refused (WIR-11).
const flagContinuation uint16 = 1

// Properties is the decoded property list of class basic. Flags says which are
// present; the others are zero.
type Properties struct {
	Flags           uint16
	ContentType     []byte
	ContentEncoding []byte
	Headers         Table
	DeliveryMode    uint8 // 2 is persistent
	Priority        uint8
	CorrelationID   []byte
	ReplyTo         []byte
	Expiration      []byte // decimal text, milliseconds
	MessageID       []byte
	Timestamp       uint64 // seconds since 1970
	Type            []byte
	UserID          []byte
	AppID           []byte
	ClusterID       []byte
}

// cutShort splits a short string off the front of b.
func cutShort(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	if len(b) < end {
		return nil, nil, false
	}
	return b[1:end:end], b[end:], true
}

// Decode reads flags and property list, all of b. Strings and headers are views
// into b; after an error the fields have no meaning.
func (p *Properties) Decode(b []byte) error {
	*p = Properties{}
	if len(b) < 2 {
		return ErrTruncated
	}
	p.Flags = binary.BigEndian.Uint16(b)
	b = b[2:]
	if p.Flags&flagContinuation != 0 {
		return ErrContinuation
	}
	var ok bool
	if p.Flags&FlagContentType != 0 {
		if p.ContentType, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagContentEncoding != 0 {
		if p.ContentEncoding, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagHeaders != 0 {
		if len(b) < 4 {
			return ErrTruncated
		}
		n := binary.BigEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		p.Headers, b = b[4:end:end], b[end:]
		if err := p.Headers.Validate(); err != nil {
			return err
		}
	}
	if p.Flags&FlagDeliveryMode != 0 {
		if len(b) < 1 {
			return ErrTruncated
		}
		p.DeliveryMode, b = b[0], b[1:]
	}
	if p.Flags&FlagPriority != 0 {
		if len(b) < 1 {
			return ErrTruncated
		}
		p.Priority, b = b[0], b[1:]
	}
	const later = FlagCorrelationID | FlagReplyTo | FlagExpiration | FlagMessageID |
		FlagTimestamp | FlagType | FlagUserID | FlagAppID | FlagClusterID
	if p.Flags&later != 0 {
		return p.decodeLater(b)
	}
	if len(b) != 0 {
		return ErrTrailing
	}
	return nil
}

// decodeLater reads the properties after priority, which few messages have.
func (p *Properties) decodeLater(b []byte) error {
	var ok bool
	if p.Flags&FlagCorrelationID != 0 {
		if p.CorrelationID, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagReplyTo != 0 {
		if p.ReplyTo, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagExpiration != 0 {
		if p.Expiration, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagMessageID != 0 {
		if p.MessageID, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagTimestamp != 0 {
		if len(b) < 8 {
			return ErrTruncated
		}
		p.Timestamp, b = binary.BigEndian.Uint64(b), b[8:]
	}
	if p.Flags&FlagType != 0 {
		if p.Type, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagUserID != 0 {
		if p.UserID, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagAppID != 0 {
		if p.AppID, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if p.Flags&FlagClusterID != 0 {
		if p.ClusterID, b, ok = cutShort(b); !ok {
			return ErrTruncated
		}
	}
	if len(b) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends flags and property list: those properties whose flag is set,
// whatever the fields hold. Bit 1, which has no meaning, is kept.
func (p *Properties) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, p.Flags&^flagContinuation)
	if p.Flags&FlagContentType != 0 {
		dst = appendShort(dst, p.ContentType)
	}
	if p.Flags&FlagContentEncoding != 0 {
		dst = appendShort(dst, p.ContentEncoding)
	}
	if p.Flags&FlagHeaders != 0 {
		dst = appendLong(dst, p.Headers)
	}
	if p.Flags&FlagDeliveryMode != 0 {
		dst = append(dst, p.DeliveryMode)
	}
	if p.Flags&FlagPriority != 0 {
		dst = append(dst, p.Priority)
	}
	if p.Flags&FlagCorrelationID != 0 {
		dst = appendShort(dst, p.CorrelationID)
	}
	if p.Flags&FlagReplyTo != 0 {
		dst = appendShort(dst, p.ReplyTo)
	}
	if p.Flags&FlagExpiration != 0 {
		dst = appendShort(dst, p.Expiration)
	}
	if p.Flags&FlagMessageID != 0 {
		dst = appendShort(dst, p.MessageID)
	}
	if p.Flags&FlagTimestamp != 0 {
		dst = binary.BigEndian.AppendUint64(dst, p.Timestamp)
	}
	if p.Flags&FlagType != 0 {
		dst = appendShort(dst, p.Type)
	}
	if p.Flags&FlagUserID != 0 {
		dst = appendShort(dst, p.UserID)
	}
	if p.Flags&FlagAppID != 0 {
		dst = appendShort(dst, p.AppID)
	}
	if p.Flags&FlagClusterID != 0 {
		dst = appendShort(dst, p.ClusterID)
	}
	return dst
}
