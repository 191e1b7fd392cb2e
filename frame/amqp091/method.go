package amqp091

import "strconv"

// MethodID names a method: class in the upper half, method in the lower.
type MethodID uint32

// Method is any of the generated structs, by pointer.
type Method interface {
	// ID returns the method's identifier.
	ID() MethodID
	// Decode reads the arguments, the method payload after the identifier.
	Decode(args []byte) error
	// Append appends the whole frame.
	Append(dst []byte, channel uint16) []byte
}

// Properties of a method in methodInfo.
const (
	fromClient = 1 << iota
	hasContent
)

// Class returns the class number, 60 for basic.
func (id MethodID) Class() uint16 { return uint16(id >> 16) }

// Method returns the number within the class.
func (id MethodID) Method() uint16 { return uint16(id) }

// String returns the name in the protocol's spelling, "queue.declare", or the
// two numbers, "50.99", for an unknown method (this alone allocates).
func (id MethodID) String() string {
	if name, _ := methodInfo(id); name != "" {
		return name
	}
	return strconv.Itoa(int(id.Class())) + "." + strconv.Itoa(int(id.Method()))
}

// Known reports whether the method is in the table.
func (id MethodID) Known() bool {
	name, _ := methodInfo(id)
	return name != ""
}

// FromClient reports whether the protocol lets a client send the method. For
// channel.flow-ok it does, though a broker that never sends flow awaits none.
func (id MethodID) FromClient() bool {
	_, flags := methodInfo(id)
	return flags&fromClient != 0
}

// HasContent reports whether a content header and body follow the method.
func (id MethodID) HasContent() bool {
	_, flags := methodInfo(id)
	return flags&hasContent != 0
}
