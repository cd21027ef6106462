import type { Texts } from '../languages/pick.ts'
import { english } from './texts-en.ts'
import { spanish } from './texts-es.ts'
import type { DeveloperTexts } from './texts-shape.ts'

export const developerTexts: Texts<DeveloperTexts> = { en: english, es: spanish }
