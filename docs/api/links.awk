# What Doxygen reads in place of a documentation page: the text alone of each link to a place in a page or outside of
# docs/, because Doxygen would look for both in vain, and the names of pictures without their folder, which it knows.
{ page = page $0 "\n" }
END {
  gsub(/\]\(pictures\//, "](", page)
  while (match(page, /\]\((#[^)]*|\.\.\/[^)]*|[a-z]+\/)\)/)) {
    end = RSTART
    tail = substr(page, RSTART + RLENGTH)
    head = substr(page, 1, end - 1)
    match(head, /\[[^\[]*$/)
    page = substr(head, 1, RSTART - 1) substr(head, RSTART + 1) tail
  }
  printf "%s", page
}
