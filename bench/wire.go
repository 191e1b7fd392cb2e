package bench

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Frame types and sizes, spec section B.1.
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xCE

	frameHeadSize = 7
	frameOverhead = 8
)

// Method ids, class<<16 | method, spec section A.1.
const (
	connectionStart   = 10<<16 | 10
	connectionStartOk = 10<<16 | 11
	connectionTune    = 10<<16 | 30
	connectionTuneOk  = 10<<16 | 31
	connectionOpen    = 10<<16 | 40
	connectionOpenOk  = 10<<16 | 41
	connectionClose   = 10<<16 | 50
	connectionCloseOk = 10<<16 | 51
	channelOpen       = 20<<16 | 10
	channelOpenOk     = 20<<16 | 11
	channelClose      = 20<<16 | 40
	channelCloseOk    = 20<<16 | 41
	exchangeDeclare   = 40<<16 | 10
	exchangeDeclareOk = 40<<16 | 11
	exchangeDelete    = 40<<16 | 20
	exchangeDeleteOk  = 40<<16 | 21
	queueDeclare      = 50<<16 | 10
	queueDeclareOk    = 50<<16 | 11
	queueBind         = 50<<16 | 20
	queueBindOk       = 50<<16 | 21
	queueDelete       = 50<<16 | 40
	queueDeleteOk     = 50<<16 | 41
	basicQos          = 60<<16 | 10
	basicQosOk        = 60<<16 | 11
	basicConsume      = 60<<16 | 20
	basicConsumeOk    = 60<<16 | 21
	basicCancel       = 60<<16 | 30
	basicPublish      = 60<<16 | 40
	basicReturn       = 60<<16 | 50
	basicDeliver      = 60<<16 | 60
	basicAck          = 60<<16 | 80
	basicNack         = 60<<16 | 120
	confirmSelect     = 85<<16 | 10
	confirmSelectOk   = 85<<16 | 11
)

// protocolHeader opens every AMQP 0-9-1 connection.
var protocolHeader = []byte{'A', 'M', 'Q', 'P', 0, 0, 9, 1}

var be = binary.BigEndian

// beginFrame appends a frame head with the size left open and returns the
// offset that endFrame needs.
func beginFrame(dst []byte, typ byte, channel uint16) ([]byte, int) {
	start := len(dst)
	dst = append(dst, typ, byte(channel>>8), byte(channel), 0, 0, 0, 0)
	return dst, start
}

// endFrame fills in the size of the frame begun at start and closes it.
func endFrame(dst []byte, start int) []byte {
	be.PutUint32(dst[start+3:], uint32(len(dst)-start-frameHeadSize))
	return append(dst, frameEnd)
}

// appendMethod appends one whole method frame with already encoded arguments.
func appendMethod(dst []byte, channel uint16, id uint32, args []byte) []byte {
	dst, start := beginFrame(dst, frameMethod, channel)
	dst = be.AppendUint32(dst, id)
	dst = append(dst, args...)
	return endFrame(dst, start)
}

// appendShortstr appends s with its one byte length. Longer strings are cut:
// every name here is made by this package or checked by checkNames.
func appendShortstr(dst []byte, s string) []byte {
	if len(s) > 255 {
		s = s[:255]
	}
	return append(append(dst, byte(len(s))), s...)
}

// appendLongstr appends s with its four byte length.
func appendLongstr(dst []byte, s string) []byte {
	return append(be.AppendUint32(dst, uint32(len(s))), s...)
}

// appendTable appends a field table of booleans, integers, strings and nested
// maps, keys in order so that equal settings give equal bytes.
func appendTable(dst []byte, table map[string]any) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	keys := make([]string, 0, len(table))
	for key := range table {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		dst = appendShortstr(dst, key)
		var err error
		switch value := table[key].(type) {
		case bool:
			bit := byte(0)
			if value {
				bit = 1
			}
			dst = append(dst, 't', bit)
		case int64:
			dst = be.AppendUint64(append(dst, 'l'), uint64(value))
		case float64:
			// JSON has one number type; queue arguments are integers.
			if value != float64(int64(value)) {
				return nil, fmt.Errorf("argument %q: %v is not a whole number", key, value)
			}
			dst = be.AppendUint64(append(dst, 'l'), uint64(int64(value)))
		case string:
			dst = appendLongstr(append(dst, 'S'), value)
		case map[string]any:
			dst, err = appendTable(append(dst, 'F'), value)
		default:
			err = fmt.Errorf("argument %q: %T cannot be sent", key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	be.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

// publish describes one message to encode.
type publish struct {
	exchange, key string
	body          []byte
	persistent    bool
	mandatory     bool
}

// appendPublish appends basic.publish, content header and body frames, the
// body split at frameMax - 8 octets (WIR-06).
func appendPublish(dst []byte, channel uint16, p publish, frameMax int) []byte {
	dst, start := beginFrame(dst, frameMethod, channel)
	dst = be.AppendUint32(dst, basicPublish)
	dst = append(dst, 0, 0)
	dst = appendShortstr(dst, p.exchange)
	dst = appendShortstr(dst, p.key)
	bits := byte(0)
	if p.mandatory {
		bits = 1
	}
	dst = endFrame(append(dst, bits), start)

	dst, start = beginFrame(dst, frameHeader, channel)
	dst = append(dst, 0, 60, 0, 0)
	dst = be.AppendUint64(dst, uint64(len(p.body)))
	if p.persistent {
		dst = append(dst, 0x10, 0x00, 2) // flags: delivery-mode; 2 = persistent
	} else {
		dst = append(dst, 0, 0)
	}
	dst = endFrame(dst, start)

	for body := p.body; len(body) > 0; {
		n := min(len(body), frameMax-frameOverhead)
		dst, start = beginFrame(dst, frameBody, channel)
		dst = endFrame(append(dst, body[:n]...), start)
		body = body[n:]
	}
	return dst
}

// appendAck appends basic.ack for tag, and for all before it when multiple.
func appendAck(dst []byte, channel uint16, tag uint64, multiple bool) []byte {
	dst, start := beginFrame(dst, frameMethod, channel)
	dst = be.AppendUint32(dst, basicAck)
	dst = be.AppendUint64(dst, tag)
	bits := byte(0)
	if multiple {
		bits = 1
	}
	return endFrame(append(dst, bits), start)
}
