package amqp091

import "iter"

// All ranges over the entries in wire order, duplicates included. Keys and
// values are views. It ends silently at a damaged entry.
func (t Table) All() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		for key, v, rest, ok := t.Next(); ok; key, v, rest, ok = rest.Next() {
			if !yield(key, v) {
				return
			}
		}
	}
}

// Array ranges over the items of tag A; nothing for any other tag. It ends
// silently at a damaged item.
func (v Value) Array() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Tag != 'A' {
			return
		}
		for item, rest, ok := cutValue(v.Data); ok; item, rest, ok = cutValue(rest) {
			if !yield(item) {
				return
			}
		}
	}
}
