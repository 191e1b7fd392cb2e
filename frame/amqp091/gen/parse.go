package main

import (
	"fmt"
	"strconv"
	"strings"
)

// field is one argument of a method, in wire order.
type field struct {
	name     string // as in the table, hyphens kept
	kind     string // wire type
	reserved bool   // not in the struct
	fixed    uint64 // what is written for a reserved number
}

// goName is the struct field's name: delivery-tag becomes DeliveryTag.
func (f field) goName() string { return camel(f.name) }

// method is one line of the table.
type method struct {
	class, index uint16
	name         string // queue.declare
	client       bool   // clients may send it
	server       bool   // servers may send it
	content      bool
	fields       []field
}

// goName is the struct's name: queue.declare-ok becomes QueueDeclareOk.
func (m method) goName() string { return camel(m.name) }

func (m method) sender() string {
	switch {
	case m.client && m.server:
		return "both peers"
	case m.client:
		return "clients"
	}
	return "servers"
}

// camel joins the words of a table name the way Go writes them.
func camel(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// parse reads the whole table. Every error names its line.
func parse(text string) ([]method, error) {
	var methods []method
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m, err := parseMethod(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		id := fmt.Sprintf("%d.%d", m.class, m.index)
		if seen[id] || seen[m.name] {
			return nil, fmt.Errorf("line %d: %s %s stands twice", i+1, id, m.name)
		}
		seen[id], seen[m.name] = true, true
		methods = append(methods, m)
	}
	return methods, nil
}

func parseMethod(words []string) (method, error) {
	if len(words) < 3 {
		return method{}, fmt.Errorf("want id, name and sender, got %q", words)
	}
	class, index, found := strings.Cut(words[0], ".")
	c, errClass := strconv.ParseUint(class, 10, 16)
	n, errIndex := strconv.ParseUint(index, 10, 16)
	if !found || errClass != nil || errIndex != nil {
		return method{}, fmt.Errorf("bad method id %q", words[0])
	}
	if !strings.Contains(words[1], ".") {
		return method{}, fmt.Errorf("bad method name %q", words[1])
	}
	by, content := strings.CutSuffix(words[2], "+content")
	m := method{class: uint16(c), index: uint16(n), name: words[1], content: content}
	switch by {
	case "C":
		m.client = true
	case "S":
		m.server = true
	case "CS":
		m.client, m.server = true, true
	default:
		return method{}, fmt.Errorf("bad sender %q", words[2])
	}
	for _, word := range words[3:] {
		f, err := parseField(word)
		if err != nil {
			return method{}, err
		}
		m.fields = append(m.fields, f)
	}
	return m, nil
}

func parseField(word string) (field, error) {
	name, kind, found := strings.Cut(word, ":")
	if !found || name == "" {
		return field{}, fmt.Errorf("bad field %q", word)
	}
	f := field{name: name, reserved: strings.HasPrefix(name, "reserved")}
	kind, value, hasValue := strings.Cut(kind, "=")
	f.kind = kind
	if _, known := goTypes[kind]; !known {
		return field{}, fmt.Errorf("field %q: unknown type %q", name, kind)
	}
	if hasValue {
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil || !f.reserved || fixedSize[kind] == 0 {
			return field{}, fmt.Errorf("field %q: only reserved numbers take a value", name)
		}
		f.fixed = v
	}
	return f, nil
}
