import { readPreferences } from '../accept.ts'
import { arabic } from './ar.ts'
import { german } from './de.ts'
import { english } from './en.ts'
import { spanish } from './es.ts'
import { french } from './fr.ts'
import type { Language } from './language.ts'
import { chinese } from './zh.ts'

export const languages: readonly Language[] = [english, spanish, french, german, arabic, chinese]

/** The language that the URL names, else the first of the browser's preferences that we have, else English. */
export function chooseLanguage(asked: unknown, acceptLanguage: string | undefined): Language {
  const wanted = readPreferences(acceptLanguage).map(({ value }) => value)
  const tags = typeof asked === 'string' ? [asked, ...wanted] : wanted
  const find = (tag: string) => languages.find((language) => language.tag === tag.toLowerCase().split('-')[0])
  return tags.map(find).find((language) => language !== undefined) ?? english
}
