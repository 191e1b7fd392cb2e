package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	table := flag.String("table", "gen/methods.txt", "method table to read")
	dir := flag.String("dir", ".", "folder to write the generated files to")
	flag.Parse()
	text, err := os.ReadFile(*table)
	if err != nil {
		log.Fatalf("gen: %v", err)
	}
	files, err := generate(string(text))
	if err != nil {
		log.Fatalf("gen: %s: %v", *table, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), content, 0o644); err != nil {
			log.Fatalf("gen: %v", err)
		}
	}
}
