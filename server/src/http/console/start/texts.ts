import type { Texts } from '../languages/pick.ts'
import type { Step } from './steps.ts'

type StartTexts = {
  readonly title: string
  readonly about: string
  readonly finished: string
  readonly count: string
  readonly done: string
  readonly next: string
  readonly skipped: string
  readonly skip: string
  readonly skipAll: string
  readonly steps: Readonly<
    Record<
      Step,
      { readonly title: string; readonly text: string; readonly doneText: string; readonly action: string }
    >
  >
  readonly testTitle: string
  readonly testText: string
  readonly liveTitle: string
  readonly liveText: string
}

/** The first steps of a store. */
export const startTexts: Texts<StartTexts> = {
  en: {
    title: 'First steps',
    about: 'Each is ticked off when it has really happened. Skip what you do not need.',
    finished: 'Everything is done. You find this page here whenever you look for it.',
    count: '{done} of {all} done',
    done: 'Done',
    next: 'Next',
    skipped: 'Skipped',
    skip: 'Skip',
    skipAll: 'Skip everything and hide this page',
    steps: {
      wallet: {
        title: 'The wallet that is paid',
        text: 'Payments go straight to a wallet of yours. Nobody in between holds the money.',
        doneText: 'New payments go here:',
        action: 'Set up the wallet',
      },
      payment: {
        title: 'A payment',
        text: 'Make a payment link and pay it yourself. You see it arrive.',
        doneText: 'Somebody has paid. Every payment is in the list.',
        action: 'Make a payment',
      },
      key: {
        title: 'A key for your shop’s server',
        text: 'Your shop makes checkouts with it. Done when the key is used for the first time.',
        doneText: 'Your server has used its key.',
        action: 'Make a key',
      },
      webhook: {
        title: 'A webhook',
        text: 'Tells your shop’s server that an order is paid. Done when your server has taken the first message.',
        doneText: 'Your server has taken a message.',
        action: 'Add an endpoint',
      },
    },
    testTitle: 'This is a test store',
    testText:
      'It works like a live one, on networks where money is worth nothing. Try everything here; nothing moves over to a live store by itself.',
    liveTitle: 'This is a live store',
    liveText: 'Payments here are real money. For a first try use a small amount, or a test store.',
  },
  es: {
    title: 'Primeros pasos',
    about: 'Cada uno se marca cuando ha ocurrido de verdad. Omita lo que no necesite.',
    finished: 'Todo está hecho. Esta página sigue aquí cuando la busque.',
    count: '{done} de {all} hechos',
    done: 'Hecho',
    next: 'Siguiente',
    skipped: 'Omitido',
    skip: 'Omitir',
    skipAll: 'Omitir todo y ocultar esta página',
    steps: {
      wallet: {
        title: 'La cartera que cobra',
        text: 'Los pagos van directamente a una cartera suya. Nadie guarda el dinero por el camino.',
        doneText: 'Los pagos nuevos van aquí:',
        action: 'Preparar la cartera',
      },
      payment: {
        title: 'Un pago',
        text: 'Cree un enlace de pago y páguelo usted mismo. Lo verá llegar.',
        doneText: 'Alguien ha pagado. Todos los pagos están en la lista.',
        action: 'Crear un pago',
      },
      key: {
        title: 'Una clave para el servidor de su tienda',
        text: 'Con ella su tienda crea cobros. Se marca cuando la clave se usa por primera vez.',
        doneText: 'Su servidor ha usado su clave.',
        action: 'Crear una clave',
      },
      webhook: {
        title: 'Un webhook',
        text: 'Avisa al servidor de su tienda de que un pedido está pagado. Se marca cuando su servidor acepta el primer mensaje.',
        doneText: 'Su servidor ha aceptado un mensaje.',
        action: 'Añadir un destino',
      },
    },
    testTitle: 'Esta es una tienda de prueba',
    testText:
      'Funciona como una real, en redes donde el dinero no vale nada. Pruebe aquí lo que quiera; nada pasa por sí solo a una tienda real.',
    liveTitle: 'Esta es una tienda real',
    liveText:
      'Aquí los pagos son dinero de verdad. Para probar use un importe pequeño o una tienda de prueba.',
  },
}
