package wal

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A compressed payload is, behind the references:
//
//	first u32, the first part as it was, raw u32, the rest compressed
//
// where raw is the size of the rest before.
const compressFixed = 8

// compressor holds what compressing needs, so that it allocates nothing per record
// in the long run.
type compressor struct {
	raw, out     []byte
	first, sizes [4]byte
	list         [4][]byte
	encoder      *zstd.Encoder
}

// parts compresses all but the first part if that saves an eighth; otherwise it
// returns the parts as they are. The result is valid until the next call.
func (c *compressor) parts(how Compression, threshold int, parts [][]byte) ([][]byte, uint8) {
	size := 0
	for i := 1; i < len(parts); i++ {
		size += len(parts[i])
	}
	if size < threshold || size > RecordBytesMax/2 {
		return parts, 0
	}
	c.raw = c.raw[:0]
	for _, part := range parts[1:] {
		c.raw = append(c.raw, part...)
	}
	flag := uint8(flagS2)
	if how == CompressS2 {
		if n := s2.MaxEncodedLen(size); n > cap(c.out) {
			c.out = make([]byte, n)
		}
		c.out = s2.Encode(c.out[:cap(c.out)], c.raw)
	} else {
		flag = flagZstd
		if c.encoder == nil {
			encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
			if err != nil {
				return parts, 0
			}
			c.encoder = encoder
		}
		c.out = c.encoder.EncodeAll(c.raw, c.out[:0])
	}
	if len(c.out)+compressFixed > size-size/8 {
		return parts, 0
	}
	binary.LittleEndian.PutUint32(c.first[:], uint32(len(parts[0])))
	binary.LittleEndian.PutUint32(c.sizes[:], uint32(size))
	c.list = [4][]byte{c.first[:], parts[0], c.sizes[:], c.out}
	return c.list[:], flag
}

var errCompressed = errors.New("wal: compressed payload does not decode")

// zstdDecoder is shared: DecodeAll may be called from many goroutines.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(RecordBytesMax))
})

// splitCompressed finds the pieces of a compressed payload.
func splitCompressed(b []byte) (first []byte, size int, rest []byte, err error) {
	if len(b) < compressFixed {
		return nil, 0, nil, errCompressed
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < 0 || n > len(b)-compressFixed {
		return nil, 0, nil, errCompressed
	}
	first = b[4 : 4+n]
	size = int(binary.LittleEndian.Uint32(b[4+n:]))
	if size < 0 || size > RecordBytesMax {
		return nil, 0, nil, errCompressed
	}
	return first, size, b[compressFixed+n:], nil
}

// decompress appends a whole payload to dst.
func decompress(dst, b []byte, flags uint8) ([]byte, error) {
	first, size, rest, err := splitCompressed(b)
	if err != nil {
		return dst, err
	}
	dst = append(dst, first...)
	start := len(dst)
	if flags&flagZstd != 0 {
		decoder, err := zstdDecoder()
		if err != nil {
			return dst, err
		}
		if dst, err = decoder.DecodeAll(rest, dst); err != nil {
			return dst, errCompressed
		}
	} else {
		if n, err := s2.DecodedLen(rest); err != nil || n != size {
			return dst, errCompressed
		}
		for cap(dst)-start < size {
			dst = append(dst[:cap(dst)], 0)
		}
		dst = dst[:start+size]
		if _, err := s2.Decode(dst[start:], rest); err != nil {
			return dst, errCompressed
		}
	}
	if len(dst)-start != size {
		return dst, errCompressed
	}
	return dst, nil
}
