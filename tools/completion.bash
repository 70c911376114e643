# Completion of `poisson` in bash. It asks the program itself: for commands and options, names of templates, key paths, names of values.
_poisson_options() { # COMMAND...: its options, one a line: name, and what is allowed where it takes a value
  "$program" "$@" --help 2>/dev/null | sed -n 's/^  \(-h \[ \)\{0,1\}\(--[a-z-]*\)\( \]\)\{0,1\} \{0,1\}\([^ ]*\).*/\2 \4/p'
}
_poisson_keys() { # key paths of the reference configuration, each with =
  "$program" schema 2>/dev/null | awk '/^ *[a-z_]+:/ {
    match($0, /^ */); depth = RLENGTH / 2; name = $1; sub(/:.*/, "", name); path[depth] = name
    line = path[0]; for (i = 1; i <= depth; ++i) line = line "." path[i]; print line "=" }'
}
_poisson() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} values
  local -a asked
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help | awk '$1 == "poisson" && $2 ~ /^(--)?[a-z]+$/ { print $2 }' | sort -u)" -- "$word")
    return
  fi
  asked=("$command")
  if [ "$command" = bench ]; then
    if [ "$COMP_CWORD" -eq 2 ]; then
      mapfile -t COMPREPLY < <(compgen -W "$("$program" --help | awk '$1 == "poisson" && $2 == "bench" { print $3 }')" -- "$word")
      return
    fi
    asked+=("${COMP_WORDS[2]}")
  fi
  if [ "$before" = --set ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_poisson_keys)" -- "$word")
    compopt -o nospace 2>/dev/null
    return
  fi
  values=$(_poisson_options "${asked[@]}" | awk -v option="$before" '$1 == option { print $2 }')
  case $before:$values in
    --*:*FILE* | --*:*RESULTS* | --*:SCRIPT) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --*:DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --*:[a-z]*"|"*) mapfile -t COMPREPLY < <(compgen -W "${values//|/ }" -- "$word") ;;
    *)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_poisson_options "${asked[@]}" | awk '{ print $1 }')" -- "$word")
      elif [ "$command" = init ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$program" init | awk '{ print $1 }')" -- "$word")
      elif [ "$command" = schema ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_poisson_keys | tr -d =)" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
  esac
}
complete -o filenames -F _poisson poisson
