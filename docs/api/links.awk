# What Doxygen reads in place of a documentation page: the text alone of each link to a place in the page or outside of
# docs/, and links to a place in another page without the place, because Doxygen would look for them in vain; the names
# of pictures without their folder, which it knows.
{ page = page $0 "\n" }
END {
  gsub(/\]\(pictures\//, "](", page)
  gsub(/\.md#[a-z0-9-]+\)/, ".md)", page)
  while (match(page, /\]\((#[^)]*|\.\.\/[^)]*|[a-z]+\/)\)/)) {
    end = RSTART
    tail = substr(page, RSTART + RLENGTH)
    head = substr(page, 1, end - 1)
    match(head, /\[[^\[]*$/)
    page = substr(head, 1, RSTART - 1) substr(head, RSTART + 1) tail
  }
  printf "%s", page
}
