/** Loaded before a process's own code. Skews its clock by SKEW_SECONDS. */
const skewMs = Number.parseInt(process.env.SKEW_SECONDS ?? '0', 10) * 1_000
const TrueDate = Date

class SkewedDate extends TrueDate {
  constructor(...args: ConstructorParameters<DateConstructor> | []) {
    if (args.length === 0) super(TrueDate.now() + skewMs)
    else super(...(args as [number]))
  }
  static override now(): number {
    return TrueDate.now() + skewMs
  }
}

globalThis.Date = SkewedDate as DateConstructor
