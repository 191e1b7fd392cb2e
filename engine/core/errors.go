package core

import "fmt"

// Refusal names why the engine refused a command. Sessions translate it to
// their protocol's code and scope by the table below; the engine only chooses
// the row and fills in the text.
type Refusal uint8

// The refusals.
const (
	NotFound Refusal = iota
	AccessRefused
	ResourceLocked
	PreconditionFailed
	NotAllowed
	NotImplemented
	InternalError
	ResourceExhausted
	// StorageFull: what was asked for cannot be made durable for want of room.
	StorageFull
)

// RefusalRow says what a refusal is in each protocol.
type RefusalRow struct {
	// Name is the constant's name that precedes the text in AMQP 0-9-1.
	Name string
	// Code is the AMQP 0-9-1 reply code.
	Code uint16
	// Connection: the refusal ends the connection, otherwise the channel.
	Connection bool
	// Condition is the AMQP 1.0 error condition.
	Condition string
	// HTTP is the status code of the management interface.
	HTTP int
}

// Refusals is the one table of what clients see.
var Refusals = [...]RefusalRow{
	NotFound:           {"NOT_FOUND", 404, false, "amqp:not-found", 404},
	AccessRefused:      {"ACCESS_REFUSED", 403, false, "amqp:unauthorized-access", 401},
	ResourceLocked:     {"RESOURCE_LOCKED", 405, false, "amqp:resource-locked", 409},
	PreconditionFailed: {"PRECONDITION_FAILED", 406, false, "amqp:precondition-failed", 400},
	NotAllowed:         {"NOT_ALLOWED", 530, true, "amqp:not-allowed", 400},
	NotImplemented:     {"NOT_IMPLEMENTED", 540, true, "amqp:not-implemented", 501},
	InternalError:      {"INTERNAL_ERROR", 541, true, "amqp:internal-error", 500},
	ResourceExhausted:  {"RESOURCE_ERROR", 506, true, "amqp:resource-limit-exceeded", 503},
	StorageFull:        {"RESOURCE_ERROR", 506, false, "amqp:resource-limit-exceeded", 507},
}

// Error is a refused command: the peer's fault or the world's, never ours.
type Error struct {
	Refusal Refusal
	// Text is the detail after `NAME - `. Clients match on it.
	Text string
}

// Error implements error.
func (e *Error) Error() string { return Refusals[e.Refusal].Name + " - " + e.Text }

// Refuse makes an Error.
func Refuse(r Refusal, format string, args ...any) *Error {
	return &Error{Refusal: r, Text: fmt.Sprintf(format, args...)}
}
