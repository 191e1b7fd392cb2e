package engine

import (
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
)

// ExchangeSettings are what a declare fixes about an exchange.
type ExchangeSettings struct {
	Kind       exchange.Kind
	Durable    bool
	AutoDelete bool
	Internal   bool
	Alternate  string
	Args       core.Args
}

// errDefaultExchange answers every attempt to change the default exchange
// (EXC-05).
func errDefaultExchange() *core.Error {
	return core.Refuse(core.AccessRefused, "operation not permitted on the default exchange")
}

// FindExchange is the exchange that a bind, unbind or publish names, or why
// not (BIND-02).
func (v *VHost) FindExchange(name []byte) (*Exchange, *core.Error) {
	if x := v.Exchange(name); x != nil {
		return x, nil
	}
	return nil, v.NoExchange(string(name))
}

// FindBindable is FindExchange for commands that the default exchange refuses.
func (v *VHost) FindBindable(name []byte) (*Exchange, *core.Error) {
	if len(name) == 0 {
		return nil, errDefaultExchange()
	}
	return v.FindExchange(name)
}

// PassiveExchange checks that an exchange exists (EXC-08).
func (v *VHost) PassiveExchange(name string) *core.Error {
	_, err := v.FindBindable([]byte(name))
	return err
}

// DeclareExchange makes an exchange or checks that the one there is is equal
// (spec A.4). kind is the type's name as the client gave it.
func (v *VHost) DeclareExchange(name, kind string, s ExchangeSettings) *core.Error {
	if name == "" {
		return errDefaultExchange()
	}
	if err := v.parseExchange(name, kind, &s); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, ok := v.exchanges.Load().Get(name); ok {
		return v.sameExchange(x, kind, s)
	}
	if strings.HasPrefix(name, "amq.") {
		return core.Refuse(core.AccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", name)
	}
	if err := v.isGone(); err != nil {
		return err
	}
	x := newExchange(name, s)
	v.setAlternate(x)
	v.noteExchange(x)
	if x.Kind == exchange.Delayed {
		v.addHeld(x)
	}
	if n := v.record(); x.held != nil {
		x.held.DefSeq = n
	}
	v.addExchange(x)
	return nil
}

// parseExchange validates type and arguments and fills in what they mean.
func (v *VHost) parseExchange(name, kind string, s *ExchangeSettings) *core.Error {
	k, ok := exchange.ParseKind(kind)
	if !ok {
		if kind == "" {
			return core.Refuse(core.PreconditionFailed, "invalid exchange type ''")
		}
		return core.Refuse(core.PreconditionFailed, "unknown exchange type '%s'", kind)
	}
	s.Kind = k
	if ae, ok := s.Args[alternateArg]; ok {
		if ae.Kind != core.KindString {
			return core.Refuse(core.PreconditionFailed,
				"invalid type '%s' for arg 'alternate-exchange' in exchange '%s' in vhost '%s'", ae.Type, name, v.Name)
		}
		s.Alternate = ae.Str
	}
	if err := exchange.ValidateExchange(k, s.Args); err != nil {
		return core.Refuse(core.PreconditionFailed, "%s", err.Error())
	}
	return nil
}

// sameExchange compares a redeclaration (EXC-06, EXC-07).
func (v *VHost) sameExchange(x *Exchange, kind string, s ExchangeSettings) *core.Error {
	what := "exchange '" + x.Name + "' in vhost '" + v.Name + "'"
	if x.Kind != s.Kind {
		return inequivalent("type", what, "'"+kind+"'", "'"+x.Kind.String()+"'")
	}
	for _, f := range []struct {
		name      string
		want, has bool
	}{
		{"durable", s.Durable, x.Durable},
		{"auto_delete", s.AutoDelete, x.AutoDelete},
		{"internal", s.Internal, x.Internal},
	} {
		if f.want != f.has {
			return inequivalent(f.name, what, quoteBool(f.want), quoteBool(f.has))
		}
	}
	if x.Kind == exchange.Delayed {
		if err := sameArg(exchange.DelayedTypeArg, what, s.Args, x.Args); err != nil {
			return err
		}
	}
	return sameArg(alternateArg, what, s.Args, x.Args)
}

// DeleteExchange removes an exchange; a missing one is no error (EXC-12).
func (v *VHost) DeleteExchange(name string, ifUnused bool) *core.Error {
	if name == "" {
		return errDefaultExchange()
	}
	if strings.HasPrefix(name, "amq.") {
		return core.Refuse(core.AccessRefused, "deletion of system exchange '%s' in vhost '%s' not allowed", name, v.Name)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	x, ok := v.exchanges.Load().Get(name)
	if !ok {
		return nil
	}
	if ifUnused && len(x.bindings) > 0 {
		return core.Refuse(core.PreconditionFailed, "exchange '%s' in vhost '%s' in use", name, v.Name)
	}
	v.remove(func() { v.removeExchange(x) })
	return nil
}

func inequivalent(field, what, received, current string) *core.Error {
	return core.Refuse(core.PreconditionFailed,
		"inequivalent arg '%s' for %s: received %s but current is %s", field, what, received, current)
}

func quoteBool(b bool) string {
	if b {
		return "'true'"
	}
	return "'false'"
}

// sameArg compares one argument of a redeclaration by meaning (QUE-04).
func sameArg(name, what string, want, has core.Args) *core.Error {
	w, wok := want[name]
	h, hok := has[name]
	switch {
	case !wok && !hok:
		return nil
	case wok && hok:
		if w.Equal(h) {
			return nil
		}
		return inequivalent(name, what, "'"+w.String()+"'", "'"+h.String()+"'")
	case wok:
		return inequivalent(name, what, "the value '"+w.String()+"' of type '"+w.Type+"'", "none")
	}
	return inequivalent(name, what, "none", "the value '"+h.String()+"' of type '"+h.Type+"'")
}
