import { type Setting, zeroOr } from './parse-setting.ts'

/** When what has ended moves to the archive, and how long it stays there. */
export type ArchiveConfig = {
  /** 0: never. */
  readonly archiveAfterDays: number
  /** 0: for ever. */
  readonly retentionCheckoutsDays: number
}

export const archiveSettings: { readonly [Key in keyof ArchiveConfig]: Setting<ArchiveConfig[Key]> } = {
  archiveAfterDays: {
    name: 'ARCHIVE_AFTER_DAYS',
    about:
      'How many days after a checkout ended, and nothing happened to it since, it moves to the archive, where it reads the same: 30 to 36,500. 0: never.',
    fallback: '90',
    parse: zeroOr(30, 36_500),
  },
  retentionCheckoutsDays: {
    name: 'RETENTION_CHECKOUTS_DAYS',
    about:
      'How many days after its end a month of the archive is kept before archive drop takes it: 90 to 36,500. 0: for ever. Books must be kept for years nearly everywhere: ask before you set it.',
    fallback: '0',
    parse: zeroOr(90, 36_500),
  },
}
