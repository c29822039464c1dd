# What Doxygen reads in place of a documentation page: the text alone of each link to a place in a page or outside of
# docs/, because Doxygen would look for both in vain.
{
  while (match($0, /\]\((#|\.\.\/|\.\.?\)|[a-z]+\/\))[^)]*\)?/)) {
    head = substr($0, 1, RSTART - 1)
    tail = substr($0, RSTART + RLENGTH)
    match(head, /\[[^\[]*$/)
    $0 = substr(head, 1, RSTART - 1) substr(head, RSTART + 1) tail
  }
  print
}
