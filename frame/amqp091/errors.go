package amqp091

import "errors"

// What is wrong with octets that cannot be decoded. They carry no position: the
// session names the method or frame.
var (
	// ErrTruncated: the input ends inside a field.
	ErrTruncated = errors.New("amqp091: arguments end too early")
	// ErrTrailing: octets are left after the last field.
	ErrTrailing = errors.New("amqp091: octets after the last argument")
	// ErrTable: unknown tag, entry that overruns its table, or nesting deeper
	// than TableDepthMax.
	ErrTable = errors.New("amqp091: malformed field table")
	// ErrContinuation: the property flags announce a second flag word, which
	// AMQP 0-9-1 has no use for (WIR-11).
	ErrContinuation = errors.New("amqp091: property flags continuation is not supported")
)

// Reply codes of close and return methods.
const (
	ReplySuccess       = 200
	ContentTooLarge    = 311
	NoRoute            = 312
	NoConsumers        = 313
	ConnectionForced   = 320
	InvalidPath        = 402
	AccessRefused      = 403
	NotFound           = 404
	ResourceLocked     = 405
	PreconditionFailed = 406
	FrameError         = 501
	SyntaxError        = 502
	CommandInvalid     = 503
	ChannelError       = 504
	UnexpectedFrame    = 505
	ResourceError      = 506
	NotAllowed         = 530
	NotImplemented     = 540
	InternalError      = 541
)

// ReplyName returns the upper snake case name that starts every reply text, as
// clients match on it; "UNKNOWN" for a code that is none.
func ReplyName(code uint16) string {
	switch code {
	case ReplySuccess:
		return "REPLY_SUCCESS"
	case ContentTooLarge:
		return "CONTENT_TOO_LARGE"
	case NoRoute:
		return "NO_ROUTE"
	case NoConsumers:
		return "NO_CONSUMERS"
	case ConnectionForced:
		return "CONNECTION_FORCED"
	case InvalidPath:
		return "INVALID_PATH"
	case AccessRefused:
		return "ACCESS_REFUSED"
	case NotFound:
		return "NOT_FOUND"
	case ResourceLocked:
		return "RESOURCE_LOCKED"
	case PreconditionFailed:
		return "PRECONDITION_FAILED"
	case FrameError:
		return "FRAME_ERROR"
	case SyntaxError:
		return "SYNTAX_ERROR"
	case CommandInvalid:
		return "COMMAND_INVALID"
	case ChannelError:
		return "CHANNEL_ERROR"
	case UnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case ResourceError:
		return "RESOURCE_ERROR"
	case NotAllowed:
		return "NOT_ALLOWED"
	case NotImplemented:
		return "NOT_IMPLEMENTED"
	case InternalError:
		return "INTERNAL_ERROR"
	}
	return "UNKNOWN"
}
