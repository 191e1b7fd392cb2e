package main

import (
	"fmt"
	"io"
	"strings"
)

// printHelp writes what "ringmq serve --help" shows.
func printHelp(w io.Writer) {
	fmt.Fprint(w, "ringmq serve runs the broker. Every setting is a flag, a key of the --config file and an\n"+
		"environment variable; a flag wins over the environment, that over the file.\n\n")
	for _, s := range settings(&serveOptions{}) {
		fmt.Fprintf(w, "  --%s %s\n", s.name, valueHint(s))
		fmt.Fprintf(w, "        %s\n", s.field.Tag.Get("help"))
		if s.env != "" {
			fmt.Fprintf(w, "        default %s, environment %s\n", strings.Trim(defaultText(s), "`"), s.env)
		}
	}
}

// printSettings writes the settings in effect in the form of a configuration file, each with
// where it came from.
func printSettings(w io.Writer, o *serveOptions) {
	for _, s := range settings(o) {
		if !s.key {
			continue
		}
		fmt.Fprintf(w, "%-40s # %s\n", s.name+" = "+tomlText(&s), o.sources[s.name])
	}
}

func tomlText(s *setting) string {
	switch v := s.value.Interface().(type) {
	case bool, int:
		return fmt.Sprint(v)
	case []address:
		var parts []string
		for _, a := range v {
			parts = append(parts, fmt.Sprintf("%q", string(a)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprintf("%q", s.text())
	}
}

// configurationTable is the table of docs/configuration.md; a test keeps the page in step.
func configurationTable() string {
	var b strings.Builder
	b.WriteString("| flag | config key | environment | default | accepted | what it does |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, s := range settings(&serveOptions{}) {
		key, env := "-", "-"
		if s.key {
			key = "`" + s.name + "`"
		}
		if s.env != "" {
			env = "`" + s.env + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s | %s | %s | %s |\n",
			s.name, key, env, defaultText(s), acceptedText(s), s.field.Tag.Get("help"))
	}
	return b.String()
}

func defaultText(s setting) string {
	if d := s.field.Tag.Get("default"); d != "" {
		return "`" + d + "`"
	}
	return "none"
}

// acceptedText is the setting's shape together with its bounds.
func acceptedText(s setting) string {
	text := wanted(s.field)
	low, ok := s.field.Tag.Lookup("min")
	if ok && !strings.Contains(text, low+" to ") {
		text += ", " + low + " to " + s.field.Tag.Get("max")
	}
	return text
}

func valueHint(s setting) string {
	if words, ok := s.field.Tag.Lookup("enum"); ok {
		return strings.ReplaceAll(words, ",", "|")
	}
	switch s.field.Type.Name() {
	case "":
		return "HOST:PORT"
	case "optionalAddr":
		return "HOST:PORT|off"
	case "coreList":
		return "auto|0-3,6"
	case "bool":
		return "true|false"
	case "Duration":
		return "DURATION"
	case "int":
		return "NUMBER"
	case "byteSize":
		return "SIZE"
	case "memoryLimit":
		return "SIZE|PERCENT%"
	default:
		return "PATH"
	}
}
