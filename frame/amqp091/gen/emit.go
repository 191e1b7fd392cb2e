package main

import (
	"bytes"
	"fmt"
	"go/format"
)

const header = "// Code generated from gen/methods.txt. DO NOT EDIT.\n\n"

// goTypes gives the struct field's type per wire type.
var goTypes = map[string]string{
	"bit": "bool", "octet": "uint8", "short": "uint16", "long": "uint32", "longlong": "uint64",
	"shortstr": "[]byte", "longstr": "[]byte", "table": "Table",
}

// fixedSize gives the octets of wire types that have a fixed width. A bit has
// none of its own: a run of bits is one octet, see group.
var fixedSize = map[string]int{"octet": 1, "short": 2, "long": 4, "longlong": 8}

// putSuffix names the encoding/binary function of a number wider than an octet.
var putSuffix = map[string]string{"short": "Uint16", "long": "Uint32", "longlong": "Uint64"}

// generate returns the generated files by name.
func generate(text string) (map[string][]byte, error) {
	methods, err := parse(text)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, emit := range map[string]func(*bytes.Buffer, []method){
		"methods_gen.go":  emitMethods,
		"registry_gen.go": emitRegistry,
	} {
		var b bytes.Buffer
		emit(&b, methods)
		if files[name], err = format.Source(b.Bytes()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// emitRegistry writes the identifiers, their names and properties, and New.
func emitRegistry(b *bytes.Buffer, methods []method) {
	b.WriteString(header + "package amqp091\n\n// Method identifiers, class in the upper half.\nconst (\n")
	for _, m := range methods {
		fmt.Fprintf(b, "// Method%s is %s, sent by %s.\n", m.goName(), m.name, m.sender())
		fmt.Fprintf(b, "Method%s MethodID = %d<<16 | %d\n", m.goName(), m.class, m.index)
	}
	b.WriteString(")\n\n// methodInfo returns name and properties; the empty name means unknown.\n")
	b.WriteString("func methodInfo(id MethodID) (name string, flags uint8) {\nswitch id {\n")
	for _, m := range methods {
		flags := "0"
		if m.client {
			flags = "fromClient"
		}
		if m.content {
			flags += " | hasContent"
		}
		fmt.Fprintf(b, "case Method%s: return %q, %s\n", m.goName(), m.name, flags)
	}
	b.WriteString("}\nreturn \"\", 0\n}\n\n")
	b.WriteString("// New returns an empty method of that kind, nil for an unknown one. It allocates:\n" +
		"// it is meant for tools and tests, the sessions name the struct they want.\n")
	b.WriteString("func New(id MethodID) Method {\nswitch id {\n")
	for _, m := range methods {
		fmt.Fprintf(b, "case Method%s: return new(%s)\n", m.goName(), m.goName())
	}
	b.WriteString("}\nreturn nil\n}\n\n// Methods lists every method identifier, in ascending order.\n")
	b.WriteString("func Methods() []MethodID {\nreturn []MethodID{\n")
	for _, m := range methods {
		fmt.Fprintf(b, "Method%s,\n", m.goName())
	}
	b.WriteString("}\n}\n")
}

// emitMethods writes struct, Decode, Append and ID of every method.
func emitMethods(b *bytes.Buffer, methods []method) {
	b.WriteString(header + "//ringmq:hot\n\npackage amqp091\n\nimport \"encoding/binary\"\n\n")
	for _, m := range methods {
		emitStruct(b, m)
		emitDecode(b, m)
		emitAppend(b, m)
		fmt.Fprintf(b, "// ID returns Method%s.\n", m.goName())
		fmt.Fprintf(b, "func (m *%s) ID() MethodID { return Method%s }\n\n", m.goName(), m.goName())
	}
}

func emitStruct(b *bytes.Buffer, m method) {
	fmt.Fprintf(b, "// %s is %s (%d.%d), sent by %s", m.goName(), m.name, m.class, m.index, m.sender())
	if m.content {
		b.WriteString(", followed by content")
	}
	fmt.Fprintf(b, ".\ntype %s struct {\n", m.goName())
	for _, f := range m.fields {
		if !f.reserved {
			fmt.Fprintf(b, "%s %s\n", f.goName(), goTypes[f.kind])
		}
	}
	b.WriteString("}\n\n")
}

// step is one bounds check of a decoder: a run of fixed-width fields, at most
// closed by one field of variable width whose length prefix the check covers.
type step struct {
	fixed    []group
	size     int // octets that must be there, length prefix included
	variable *field
}

// group is one number or one octet of bits at an offset of its step.
type group struct {
	offset int
	fields []field
}

// steps cuts a method's arguments into bounds checks.
func steps(fields []field) []step {
	var out []step
	var s step
	for i := range fields {
		f := &fields[i]
		switch f.kind {
		case "bit":
			last := len(s.fixed) - 1
			if last >= 0 && s.fixed[last].fields[0].kind == "bit" && len(s.fixed[last].fields) < 8 {
				s.fixed[last].fields = append(s.fixed[last].fields, *f)
				continue
			}
			s.fixed = append(s.fixed, group{s.size, []field{*f}})
			s.size++
		case "shortstr", "longstr", "table":
			s.variable = f
			s.size += prefixSize(f.kind)
			out = append(out, s)
			s = step{}
		default:
			s.fixed = append(s.fixed, group{s.size, []field{*f}})
			s.size += fixedSize[f.kind]
		}
	}
	if s.size > 0 {
		out = append(out, s)
	}
	return out
}

func prefixSize(kind string) int {
	if kind == "shortstr" {
		return 1
	}
	return 4
}

func emitDecode(b *bytes.Buffer, m method) {
	if len(m.fields) == 0 {
		fmt.Fprintf(b, "// Decode refuses any argument octet: the method has none.\n")
	} else {
		fmt.Fprintf(b, "// Decode reads the arguments. Strings and tables are views into args; after an\n"+
			"// error the fields have no meaning.\n")
	}
	fmt.Fprintf(b, "func (m *%s) Decode(args []byte) error {\n", m.goName())
	for _, s := range steps(m.fields) {
		fmt.Fprintf(b, "if len(args) < %d {\nreturn ErrTruncated\n}\n", s.size)
		for _, g := range s.fixed {
			emitRead(b, g)
		}
		if s.variable == nil {
			fmt.Fprintf(b, "args = args[%d:]\n", s.size)
			continue
		}
		emitReadVariable(b, *s.variable, s.size)
	}
	b.WriteString("if len(args) != 0 {\nreturn ErrTrailing\n}\nreturn nil\n}\n\n")
}

func emitRead(b *bytes.Buffer, g group) {
	for bit, f := range g.fields {
		switch {
		case f.reserved:
		case f.kind == "bit":
			fmt.Fprintf(b, "m.%s = args[%d]&%d != 0\n", f.goName(), g.offset, 1<<bit)
		case f.kind == "octet":
			fmt.Fprintf(b, "m.%s = args[%d]\n", f.goName(), g.offset)
		default:
			fmt.Fprintf(b, "m.%s = binary.BigEndian.%s(args[%d:])\n", f.goName(), putSuffix[f.kind], g.offset)
		}
	}
}

// emitReadVariable reads the field whose length prefix ends at offset from.
func emitReadVariable(b *bytes.Buffer, f field, from int) {
	b.WriteString("{\n")
	if f.kind == "shortstr" {
		fmt.Fprintf(b, "end := %d + int(args[%d])\n", from, from-1)
		b.WriteString("if len(args) < end {\nreturn ErrTruncated\n}\n")
	} else {
		fmt.Fprintf(b, "n := binary.BigEndian.Uint32(args[%d:])\n", from-4)
		fmt.Fprintf(b, "if uint64(n) > uint64(len(args)-%d) {\nreturn ErrTruncated\n}\n", from)
		fmt.Fprintf(b, "end := %d + int(n)\n", from)
	}
	if !f.reserved {
		fmt.Fprintf(b, "m.%s = args[%d:end:end]\n", f.goName(), from)
	}
	if f.kind == "table" {
		fmt.Fprintf(b, "if err := m.%s.Validate(); err != nil {\nreturn err\n}\n", f.goName())
	}
	b.WriteString("args = args[end:]\n}\n")
}

func emitAppend(b *bytes.Buffer, m method) {
	b.WriteString("// Append appends the whole method frame for channel to dst and returns it.\n")
	fmt.Fprintf(b, "func (m *%s) Append(dst []byte, channel uint16) []byte {\n", m.goName())
	b.WriteString("start := len(dst)\n")
	fmt.Fprintf(b, "dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, %d, %d, %d, %d)\n",
		m.class>>8, m.class&0xff, m.index>>8, m.index&0xff)
	for _, s := range steps(m.fields) {
		for _, g := range s.fixed {
			emitWrite(b, g)
		}
		if s.variable != nil {
			emitWriteVariable(b, *s.variable)
		}
	}
	b.WriteString("return finishFrame(dst, start)\n}\n\n")
}

func emitWrite(b *bytes.Buffer, g group) {
	f := g.fields[0]
	value := "m." + f.goName()
	if f.reserved {
		value = fmt.Sprint(f.fixed)
	}
	switch f.kind {
	case "bit":
		emitWriteBits(b, g)
	case "octet":
		fmt.Fprintf(b, "dst = append(dst, %s)\n", value)
	default:
		fmt.Fprintf(b, "dst = binary.BigEndian.Append%s(dst, %s)\n", putSuffix[f.kind], value)
	}
}

func emitWriteBits(b *bytes.Buffer, g group) {
	b.WriteString("{\nvar bits byte\n")
	for bit, f := range g.fields {
		if !f.reserved {
			fmt.Fprintf(b, "if m.%s {\nbits |= %d\n}\n", f.goName(), 1<<bit)
		}
	}
	b.WriteString("dst = append(dst, bits)\n}\n")
}

func emitWriteVariable(b *bytes.Buffer, f field) {
	switch {
	case f.reserved && f.kind == "shortstr":
		b.WriteString("dst = append(dst, 0)\n")
	case f.reserved:
		b.WriteString("dst = append(dst, 0, 0, 0, 0)\n")
	case f.kind == "shortstr":
		fmt.Fprintf(b, "dst = appendShort(dst, m.%s)\n", f.goName())
	default:
		fmt.Fprintf(b, "dst = appendLong(dst, m.%s)\n", f.goName())
	}
}
