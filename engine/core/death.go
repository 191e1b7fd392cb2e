package core

// DeathReason is why a message left a queue without being acknowledged
// (spec C.7, DLX-01).
type DeathReason uint8

// The reasons.
const (
	DiedRejected DeathReason = iota
	DiedExpired
	DiedMaxLength
	DiedDeliveryLimit
)

// String is the reason as x-death spells it.
func (r DeathReason) String() string {
	switch r {
	case DiedExpired:
		return "expired"
	case DiedMaxLength:
		return "maxlen"
	case DiedDeliveryLimit:
		return "delivery_limit"
	}
	return "rejected"
}

// Death is one entry of a message's x-death history, as far as routing needs it.
type Death struct {
	Queue  string
	Reason string
}
