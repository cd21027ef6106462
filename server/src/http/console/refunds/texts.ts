import type { Texts } from '../languages/pick.ts'
import { english } from './texts-en.ts'
import { spanish } from './texts-es.ts'
import type { RefundTexts } from './texts-shape.ts'

export const refundTexts: Texts<RefundTexts> = { en: english, es: spanish }
