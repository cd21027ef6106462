import { setImmediate } from 'node:timers/promises'
import { type Html, html } from '../page/html.ts'
import type { DocsPage } from './chapters.ts'
import { decodeEntities } from './markdown.ts'

/**
 * Search over the sections of the docs. Sections are ranked by how often they contain the words of the query and how rare
 * these are (BM25), and higher if the words are in their heading or in the page's title.
 */
export type Found = {
  readonly page: DocsPage
  /** The section's heading; the page's title for the text before the first one. */
  readonly title: string
  readonly url: string
  readonly excerpt: Html
}

type Section = {
  readonly page: DocsPage
  readonly title: string
  readonly id: string | null
  readonly text: string
  readonly counts: ReadonlyMap<string, number>
  readonly length: number
  readonly titleWords: ReadonlySet<string>
  readonly pageWords: ReadonlySet<string>
  /** How likely readers mean this page, apart from its words. */
  readonly weight: number
}

/** Words that carry no meaning in a question. */
const emptyWords: ReadonlySet<string> = new Set(
  'a an and are be can do does for how i in is it my of on or the to what when where which why with'.split(
    ' ',
  ),
)

/** No question needs more, and each word costs a walk through the vocabulary. */
const wordsMax = 8
/** Longer questions are cut. */
export const queryLengthMax = 100
const resultsMax = 20
const resultsPerPageMax = 3
/** Shorter words must match completely: too many words begin with two given letters. */
const prefixLengthMin = 3
/** Matches of a section that are compared for its excerpt. */
const matchesMax = 50
const excerptBefore = 70
const excerptLength = 220

/** Builds the index. It lets requests through between pages, because payments must not wait for a search. */
export async function openSearch(
  pages: readonly DocsPage[],
  weightOf: (page: DocsPage) => number,
): Promise<(query: string) => Found[]> {
  const sections: Section[] = []
  for (const page of pages) {
    sections.push(...sectionsOf(page, weightOf(page)))
    await setImmediate()
  }
  const averageLength = sections.reduce((sum, { length }) => sum + length, 0) / Math.max(1, sections.length)
  const places = new Map<string, Set<Section>>()
  for (const section of sections)
    for (const word of section.counts.keys()) {
      const known = places.get(word)
      if (known) known.add(section)
      else places.set(word, new Set([section]))
    }

  /** The words of the docs that a word of the query stands for, each with how well it fits. */
  const matchesOf = (asked: string): [word: string, fit: number][] => {
    const single = asked.endsWith('s') ? asked.slice(0, -1) : asked
    return [...places.keys()].flatMap((word): [string, number][] => {
      if (word === asked) return [[word, 1]]
      if (word === single || word === `${asked}s`) return [[word, 0.8]]
      return asked.length >= prefixLengthMin && word.startsWith(asked) ? [[word, 0.4]] : []
    })
  }

  return (query) => {
    const words = [...new Set(wordsOf(query.slice(0, queryLengthMax)))]
    const telling = words.filter((word) => !emptyWords.has(word))
    const asked = (telling.length > 0 ? telling : words).slice(0, wordsMax)
    const scores = new Map<Section, { score: number; matched: number }>()
    const marked = new Set<string>()
    for (const word of asked) {
      const best = new Map<Section, number>()
      for (const [match, fit] of matchesOf(word)) {
        marked.add(match)
        const holders = places.get(match) ?? new Set()
        const rarity = Math.log(1 + sections.length / holders.size)
        for (const section of holders) {
          const count = section.counts.get(match) ?? 0
          const saturated = count / (count + 0.4 + 0.8 * (section.length / averageLength))
          const score = fit * rarity * saturated * boostOf(section, match)
          best.set(section, Math.max(score, best.get(section) ?? 0))
        }
      }
      for (const [section, score] of best) {
        const sum = scores.get(section) ?? { score: 0, matched: 0 }
        scores.set(section, { score: sum.score + score, matched: sum.matched + 1 })
      }
    }
    const perPage = new Map<DocsPage, number>()
    return [...scores]
      .map(([section, { score, matched }]) => ({ section, score: score * (matched / asked.length) ** 2 }))
      .sort((a, b) => b.score - a.score)
      .filter(({ section: { page } }) => {
        const soFar = perPage.get(page) ?? 0
        perPage.set(page, soFar + 1)
        return soFar < resultsPerPageMax
      })
      .slice(0, resultsMax)
      .map(({ section }) => ({
        page: section.page,
        title: section.title,
        url: section.id === null ? section.page.url : `${section.page.url}#${section.id}`,
        excerpt: excerptOf(section.text, marked),
      }))
  }
}

/** A page's text, split at the headings that can be linked to. */
function sectionsOf(page: DocsPage, weight: number): Section[] {
  const parts = page.render().html.split(/(?=<h[23] id=")/)
  return parts.map((part, i) => {
    const [heading = '', id = '', inside = ''] = /^<h[23] id="([^"]*)">([\s\S]*?)<\/h[23]>/.exec(part) ?? []
    const title = i === 0 ? page.title : textOf(inside.replace(/<a class="anchor"[\s\S]*/, ''))
    const text = textOf(part.slice(heading.length).replace(/<h1>[\s\S]*?<\/h1>/, ''))
    const counts = new Map<string, number>()
    const words = wordsOf(`${title} ${text}`)
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    return {
      page,
      title,
      id: i === 0 ? null : id,
      text,
      counts,
      length: words.length,
      titleWords: new Set(wordsOf(title)),
      pageWords: new Set(wordsOf(page.title)),
      weight,
    }
  })
}

function boostOf({ id, titleWords, pageWords, weight }: Section, word: string): number {
  // A title that consists of the word says more than one that also contains it, and a page's more than a section's.
  const byTitle = titleWords.has(word) ? 1 + (id === null ? 10 : 5) / Math.sqrt(titleWords.size) : 1
  return weight * Math.max(byTitle, pageWords.has(word) ? 2 : 1)
}

function textOf(markup: string): string {
  return decodeEntities(
    markup.replace(/<\/?(?:code|a|b|em|strong|span)\b[^>]*>/g, '').replace(/<[^>]*>/g, ' '),
  )
    .replace(/\s+/g, ' ')
    .trim()
}

const wordForm = /[\p{L}\p{N}]+(?:[_.-][\p{L}\p{N}]+)*/gu

/** Names such as payment_not_applied, X-API-Key and verifyWebhook are words, and so are their parts. */
function wordsOf(text: string): string[] {
  return (text.match(wordForm) ?? []).flatMap((word) => {
    const parts = word.split(/[_.-]|(?<=[a-z])(?=[A-Z])/)
    return (parts.length > 1 ? [word, ...parts] : parts).map((part) => part.toLowerCase())
  })
}

/** The part of the text with the most different matches, each of them marked. */
function excerptOf(text: string, marked: ReadonlySet<string>): Html {
  const isMarked = (word: string) => wordsOf(word).some((part) => marked.has(part))
  const matches = text
    .matchAll(wordForm)
    .filter(([word]) => isMarked(word))
    .take(matchesMax)
    .toArray()
  const differentFrom = (index: number) =>
    new Set(
      matches
        .filter((match) => match.index >= index && match.index < index + excerptLength - excerptBefore)
        .map(([word]) => word.toLowerCase()),
    ).size
  const best = matches.reduce(
    (found, { index }) => (differentFrom(index) > differentFrom(found) ? index : found),
    matches[0]?.index ?? 0,
  )
  const begin = best <= excerptBefore ? 0 : text.indexOf(' ', best - excerptBefore) + 1
  const cut = text.slice(begin, begin + excerptLength)
  const end = begin + cut.length < text.length ? cut.lastIndexOf(' ') : cut.length
  const shown = end > 0 ? cut.slice(0, end) : cut
  const pieces: (Html | string)[] = []
  let done = 0
  for (const { 0: word, index } of shown.matchAll(wordForm)) {
    if (!isMarked(word)) continue
    pieces.push(shown.slice(done, index), html`<mark>${word}</mark>`)
    done = index + word.length
  }
  return html`${begin > 0 && '… '}${pieces}${shown.slice(done)}${begin + shown.length < text.length && ' …'}`
}
