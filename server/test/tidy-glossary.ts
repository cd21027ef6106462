import type { Source } from './tidy.ts'

/**
 * One name means one thing: a noun is exported as a type by one file of server/src. `homonyms` says which nouns several
 * files still export, and how many. It only shrinks: one more file is reported, and so is an entry that is too high.
 */
const homonyms: Readonly<Record<string, number>> = {
  Outcome: 2,
  Seen: 2,
}

const exportedType = /^export (?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)/gm

export function findHomonyms(sources: readonly Source[], known = homonyms): string[] {
  const files = new Map<string, string[]>(Object.keys(known).map((name) => [name, []]))
  for (const { path, text } of sources)
    for (const [, name = ''] of text.matchAll(exportedType))
      files.set(name, [...(files.get(name) ?? []), path])
  return [...files].flatMap(([name, paths]) => {
    const most = known[name] ?? 1
    if (paths.length > most)
      return `${name} is a type of ${paths.sort().join(', ')}: give each meaning a name of its own`
    if (name in known && paths.length < most)
      return `${name} is a type of ${paths.length} files: lower homonyms`
    return []
  })
}
