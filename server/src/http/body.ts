import { isUtf8 } from 'node:buffer'
import { Problem } from '../problems.ts'

/** Our deepest body has 3 levels. */
const depthMax = 8

/**
 * Parses a JSON body or rejects it. Stricter than JSON.parse in two ways: a duplicate key is an error (parsers disagree
 * on which one counts, so a proxy could see a different amount than we do), and nesting is limited.
 */
export function parseBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformed('it is not UTF-8')
  const text = bytes.toString()
  try {
    checkNesting(text)
    return JSON.parse(text)
  } catch (error) {
    throw error instanceof SyntaxError ? malformed('it has a syntax error') : error
  }
}

/** One pass over the text. Invalid JSON may pass this check; JSON.parse rejects it afterwards. */
function checkNesting(text: string): void {
  const keys: (Set<string> | null)[] = []
  // An unterminated string matches too. Otherwise every quote in it would start another search to the end.
  const token = /"(?:[^"\\]|\\.?)*"?|[{}[\]]/gs
  const colon = /\s*:/y
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match
    if (found === '{' || found === '[') {
      keys.push(found === '{' ? new Set() : null)
      if (keys.length > depthMax) throw malformed(`it is nested more than ${depthMax} levels deep`)
    } else if (found === '}' || found === ']') {
      keys.pop()
    } else {
      const seen = keys.at(-1)
      colon.lastIndex = token.lastIndex
      if (!seen || !colon.test(text)) continue
      const key = JSON.parse(found) as string
      if (seen.has(key)) throw malformed(`the key ${found} appears twice`)
      seen.add(key)
    }
  }
}

function malformed(why: string): Problem {
  return new Problem('malformed_json', `The request body was rejected: ${why}.`)
}
