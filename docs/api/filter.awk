# What Doxygen reads in place of a header; every line keeps its number. Four things are added or changed:
# - the first comment becomes the page of the file;
# - indented lines of a comment are code, and what Doxygen would take for a command or a tag elsewhere is text;
# - functions whose meaning is the same for every type have their comment here, unless the header has one, and each of
#   several variables in one declaration has the comment that follows them;
# - LibTorch's macro TORCH_MODULE(Name) becomes the class that it declares, with a comment.

function escaped(text,   parts, count, i, result) {
  count = split(text, parts, "`")
  for (i = 1; i <= count; ++i) {
    if (i % 2 == 1) {
      gsub(/\\/, "\\\\&", parts[i])
      gsub(/</, "\\<", parts[i])
      gsub(/>/, "\\>", parts[i])
      gsub(/#/, "\\#", parts[i])
      gsub(/@/, "\\@", parts[i])
      gsub(/(^| )::/, " \\::", parts[i])
    }
    result = result (i > 1 ? "`" : "") parts[i]
  }
  return result
}

# Prints a line with one line of delay, because the last line of code in a comment gets the mark of its end.
function put(line, code) {
  if (is_code && !code) held = held " \\endcode"
  if (lines++) print held
  held = line
  is_code = code
}

# Puts a line of a comment: its slashes, then its text. Indented lines are code unless they belong to a list.
function put_comment(slashes, text) {
  if (text ~ /^ *([-*]|[0-9]+\.) /) in_list = 1
  else if (text !~ /^   /) in_list = 0
  if (text !~ /^   / || in_list) put(slashes escaped(text), 0)
  else put(slashes (is_code ? "" : " \\code{.cpp}") text, 1)
}

# Whether a line declares several variables.
function has_several(code) { return code ~ /^ *[A-Za-z_:][^()]*, [A-Za-z_0-9]+[^()]*;$/ && code !~ /^ *(using|return) / }

# A declaration of several variables as one declaration for each, with the comment of all of them.
function declarations(line, text,   i, c, depth, start, type, part, result) {
  type = ""
  start = 1
  depth = 0
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    if (c ~ /[<{(]/) ++depth
    else if (c ~ /[>})]/) --depth
    else if (depth == 0 && (c == "," || c == ";")) {
      part = substr(line, start, i - start)
      if (type == "") {
        if (!match(part, /[A-Za-z_0-9]+( = [^=]*|[{][}])?$/) || RSTART < 3) return line " /**< " text " */"
        type = substr(part, 1, RSTART - 1)
        part = substr(part, RSTART)
      }
      result = result type part "; /**< " text " */"
      start = i + 2
    }
  }
  return result
}

FNR == 1 {
  is_first = 1
  name = FILENAME
  sub(/^.*framework\//, "", name)
  sub(/^.*\/models\//, "models/", name)
  put("/// \\file " name escaped(substr($0, 3)), 0)
  next
}
is_first && /^\/\// { put_comment("///", substr($0, 3)); next }
/^ *\/\/\/( |$)/ {
  match($0, /^ *\/\/\//)
  above = above substr($0, RLENGTH + 1)
  put_comment(substr($0, 1, RLENGTH), substr($0, RLENGTH + 1))
  next
}
{
  is_first = in_list = 0
  line = $0
  if (match(line, /^TORCH_MODULE\([A-Za-z0-9]+\);$/)) {
    name = substr(line, 14, length(line) - 15)
    text = "/** Holds a " name "Impl by a shared pointer, which copies of the holder share. */ "
    line = (above == "" ? text : "") "class " name " : public torch::nn::ModuleHolder<" name "Impl> {};"
  }
  if (match(line, /\/\/\/</)) {
    text = escaped(substr(line, RSTART + 4))
    code = substr(line, 1, RSTART - 1)
    sub(/ +$/, "", code)
    line = has_several(code) ? declarations(code, text) : substr(line, 1, RSTART + 3) text
  } else if (above != "") {
    if (has_several(line)) line = declarations(line, escaped(above))
  } else if (line ~ /^ *[a-z\[]/) {
    text = ""
    if (line ~ /operator==\(.*\) const = default;/) text = "Whether all members are equal."
    else if (line ~ / visit_fields\(/) text = "Lists the fields by name (tare/config/field.h)."
    else if (line ~ / from_node\(const (config::)?Node& /)
      text = "Reads a value of a configuration; throws ConfigError (tare/config/field.h)."
    else if (line ~ / to_node\(const /) text = "The value as a configuration holds it (tare/config/field.h)."
    match(line, /^ */)
    if (text != "") line = substr(line, 1, RLENGTH) "/** " text " */ " substr(line, RLENGTH + 1)
  }
  above = ""
  put(line, 0)
}
END { put("", 0) }
