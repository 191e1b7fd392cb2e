package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringmq/engine/core"
	"ringmq/engine/exchange"
	"ringmq/engine/queue"
)

// Bindings lists the bindings of a vhost by source, destination, key and arguments. Any
// goroutine.
func (v *VHost) Bindings() []*Binding {
	v.mu.Lock()
	var list []*Binding
	for _, in := range v.incoming {
		for b := range in {
			list = append(list, b)
		}
	}
	v.mu.Unlock()
	order := make(map[*Binding]string, len(list))
	for _, b := range list {
		kind, name := b.DestName()
		order[b] = strings.Join([]string{b.Source.Name, kind, name, b.Key, b.Args.Canonical()}, "\x00")
	}
	slices.SortFunc(list, func(x, y *Binding) int { return strings.Compare(order[x], order[y]) })
	return list
}

// DestName is what the binding leads to: "queue" or "exchange", and its name.
func (b *Binding) DestName() (kind, name string) {
	switch d := b.Dest.(type) {
	case *queue.Queue:
		return destQueue, d.Name
	case *Exchange:
		return destExchange, d.Name
	}
	return "", ""
}

// QueueCount is how many queues a vhost has. Any goroutine.
func (v *VHost) QueueCount() int64 {
	n := int64(0)
	v.Queues(func(*queue.Queue) { n++ })
	return n
}

// QueueDefinition is what a file of definitions says of a queue.
type QueueDefinition struct {
	Name                string
	Type                string
	Durable, AutoDelete bool
	Args                core.Args
}

// QueueDefinitions lists the queues of a vhost that are not exclusive, by name. Any
// goroutine.
func (v *VHost) QueueDefinitions() []QueueDefinition {
	var list []QueueDefinition
	v.Queues(func(q *queue.Queue) {
		if s := &q.Settings; !s.Exclusive {
			list = append(list, QueueDefinition{q.Name, s.Type.String(), s.Durable, s.AutoDelete, s.Args})
		}
	})
	slices.SortFunc(list, func(x, y QueueDefinition) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// CheckBinding says what is wrong with the key and the arguments of a binding whose source
// is an exchange of that type with those arguments, without making it.
func (b *Broker) CheckBinding(kind string, ofExchange core.Args, key string, args core.Args) error {
	s := ExchangeSettings{Args: ofExchange}
	if refused := newVHost(b, "/").parseExchange("x", kind, &s); refused != nil {
		return errors.New(refused.Text)
	}
	routes, _ := exchange.RoutesLike(s.Kind, ofExchange)
	return exchange.ValidateBinding(routes, key, args)
}

// CheckComponent says whether parameters of a component are known at all.
func CheckComponent(component string) error {
	switch component {
	case componentPolicy:
		return errors.New("policies may not be set using this method")
	case componentOperatorPolicy, componentVHostLimits:
		return nil
	}
	if !slices.Contains(keptComponents, component) {
		return fmt.Errorf("component %s not found", component)
	}
	return nil
}
