package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "folder of the module")
	all := flag.Bool("all", false, "list the covered lines too, with the files that name them")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "specs: unexpected argument", flag.Arg(0))
		os.Exit(2)
	}
	r, err := survey(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "specs:", err)
		os.Exit(1)
	}
	r.print(os.Stdout, *all)
	if len(r.faults()) > 0 {
		os.Exit(1)
	}
}
