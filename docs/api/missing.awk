# Public namespaces and classes without a comment, of which Doxygen says nothing: it takes them, with all that they hold,
# for internal. The text of a namespace may be in docs/api/namespaces.dox, which is the first file. `root`: the checkout.
function report(what) { print root "/" FILENAME ":" FNR ": error: " what }

FILENAME ~ /\.dox$/ { if (/^\\namespace /) known[$2] = 1; next }
FNR == 1 { depth = braces = has_comment = 0 }
/^ *\/\/\/ / { has_comment = 1; next }
{
  code = $0
  sub(/\/\/.*/, "", code)
  gsub(/"([^"\\]|\\.)*"/, "", code)
  gsub(/'[^']*'/, "", code)
  sub(/ +$/, "", code)
}
code ~ /^(inline )?namespace [a-z_:0-9]+ [{]/ {
  name = $1 == "inline" ? $3 : $2
  ++depth
  opened[depth] = braces
  full[depth] = depth > 1 ? full[depth - 1] "::" name : name
  if (has_comment) known[full[depth]] = 1
  is_public = full[depth] ~ /^tare/ && full[depth] !~ /::detail/
  if (is_public && !known[full[depth]]++) report("namespace " full[depth] " has no text in docs/api/namespaces.dox")
}
code ~ /^(struct|class) / { access = $1 == "struct" ? "public:" : "private:" }
code ~ /^ (public|protected|private):$/ { access = $1 }
code ~ /^(  )?(struct|class|union) [A-Za-z0-9_]+/ && code !~ /;$|< *>/ || code ~ /^(  )?(struct|class|union) .*[{].*[}];$/ {
  is_public = depth > 0 && full[depth] ~ /^tare/ && full[depth] !~ /::detail/ && (code !~ /^ / || access != "private:")
  if (is_public && !has_comment) report($1 " " $2 " has no comment")
}
code ~ /[;{}:]$/ || code == "" { has_comment = 0 }
{
  braces += gsub(/[{]/, "", code)
  braces -= gsub(/[}]/, "", code)
  while (depth > 0 && braces <= opened[depth]) --depth
}
