// What can be filled in and pressed, for each kind of question.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { text } from '../../text';
import type { Reply } from './reply';

const words = text.questions;

/** `send` answers, `busy` says that it does. */
export interface FieldsProps {
  reply: Reply;
  send: (said: Protocol.SaidOnce, is: 'yes' | 'no') => void;
}

/** Allow or deny, in the agent's own words where it has some. */
export function Permission({ reply, send }: FieldsProps) {
  const { options } = reply.question;
  const isNo = (offer: Protocol.Offer) => offer.kind?.startsWith('reject') ?? false;
  const answerOf = (offer: Protocol.Offer) => (offer.kind && options.filter(({ kind }) => kind === offer.kind).length === 1 ? offer.kind : offer.id);
  if (options.length === 0) {
    return (
      <Buttons reply={reply}>
        <Press reply={reply} answer="allow_once" isYes place={1} onPress={() => send({ ok: true }, 'yes')}>{reply.question.confirmLabel ?? words.allow}</Press>
        <Press reply={reply} answer="reject_once" place={2} onPress={() => send({ ok: false }, 'no')}>{reply.question.cancelLabel ?? words.deny}</Press>
      </Buttons>
    );
  }
  return (
    <Buttons reply={reply}>
      {options.map((offer, place) => (
        <Press key={offer.id} reply={reply} answer={answerOf(offer)} isYes={!isNo(offer)} isMain={place === options.findIndex((one) => !isNo(one))} place={place + 1} detail={offer.detail} onPress={() => send({ optionId: offer.id }, isNo(offer) ? 'no' : 'yes')}>
          {offer.label}
        </Press>
      ))}
      {!options.some(isNo) && <Press reply={reply} answer="reject_once" place={options.length + 1} onPress={() => send({ ok: false }, 'no')}>{words.deny}</Press>}
    </Buttons>
  );
}

/** Yes or no. */
export function Confirm({ reply, send }: FieldsProps) {
  const { confirmLabel, cancelLabel } = reply.question;
  return (
    <Buttons reply={reply}>
      <Press reply={reply} answer="ok" isYes place={1} onPress={() => send({ ok: true }, 'yes')}>{confirmLabel ?? words.ok}</Press>
      <Press reply={reply} answer="cancel" place={2} onPress={() => send({ ok: false }, 'no')}>{cancelLabel ?? words.no}</Press>
    </Buttons>
  );
}

/** A text. */
export function Prompt({ reply, send }: FieldsProps) {
  const { question } = reply;
  const [secret, setSecret] = useState('');
  const value = question.secret ? secret : reply.value.value;
  const change = (typed: string) => (question.secret ? setSecret(typed) : (reply.value.value = typed));
  const submit = () => {
    send({ value }, 'yes');
    // A secret does not stay on the page, whatever becomes of it.
    setSecret('');
  };
  const label = question.secret ? words.secret : words.answer;
  return (
    <>
      <label class="field">
        <span>{label}</span>
        {question.secret && <span class="hint">{words.secretMeans}</span>}
        {question.multiline && !question.secret ? (
          <textarea class="input" rows={4} value={value} onInput={(event) => change(event.currentTarget.value)} onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }} />
        ) : (
          <input class="input" {...(question.secret ? { type: 'password', autoComplete: 'new-password' } : { type: 'text', autoComplete: 'off' })} value={value} onInput={(event) => change(event.currentTarget.value)} />
        )}
      </label>
      <Submit reply={reply} submit={submit} send={send} />
    </>
  );
}

/** One or some of a list. */
export function Choose({ reply, send }: FieldsProps) {
  const { question } = reply;
  const chosen = reply.ids.value;
  const choose = (id: string, isOn: boolean) => {
    reply.error.value = '';
    reply.ids.value = question.multi ? (isOn ? [...chosen, id] : chosen.filter((one) => one !== id)) : [id];
  };
  const submit = () => {
    if (chosen.length === 0 && !question.multi) return void (reply.error.value = words.chooseFirst);
    send({ ids: question.options.map(({ id }) => id).filter((id) => chosen.includes(id)) }, 'yes');
  };
  return (
    <>
      <fieldset class="question-options">
        <legend class="small soft">{question.multi ? words.choicesMany : words.choices}</legend>
        {question.options.map((offer, place) => (
          <label class="question-option" key={offer.id}>
            <input type={question.multi ? 'checkbox' : 'radio'} name={question.questionId} value={offer.id} data-key={place < 9 ? place + 1 : undefined} checked={chosen.includes(offer.id)} onChange={(event) => choose(offer.id, event.currentTarget.checked)} />
            <span>
              {offer.label}
              {offer.detail !== undefined && <span class="soft small question-detail">{offer.detail}</span>}
            </span>
            {place < 9 && <kbd>{place + 1}</kbd>}
          </label>
        ))}
      </fieldset>
      <Submit reply={reply} submit={submit} send={send} />
    </>
  );
}

function Submit({ reply, submit, send }: { reply: Reply; submit: () => void; send: FieldsProps['send'] }) {
  const { confirmLabel, cancelLabel } = reply.question;
  return (
    <Buttons reply={reply}>
      <Press reply={reply} answer="submit" isYes isSubmit onPress={submit}>{confirmLabel ?? words.submit}</Press>
      <Press reply={reply} answer="cancel" onPress={() => send({ ok: false }, 'no')}>{cancelLabel ?? words.decline}</Press>
    </Buttons>
  );
}

/** The buttons, with what goes along with the answer above them. */
function Buttons({ reply, children }: { reply: Reply; children: ComponentChildren }) {
  const { allowReason, allowRemember, options } = reply.question;
  const hasAlways = options.some(({ kind }) => kind?.endsWith('always'));
  return (
    <>
      {allowReason && <Reason reply={reply} />}
      {allowRemember && !hasAlways && (
        <label class="check">
          <input type="checkbox" checked={reply.remember.value} onChange={(event) => (reply.remember.value = event.currentTarget.checked)} />
          {words.remember}
        </label>
      )}
      <div class="question-buttons">{children}</div>
    </>
  );
}

function Reason({ reply }: { reply: Reply }) {
  const input = useRef<HTMLInputElement>(null);
  if (!reply.wantsReason.value) {
    return <button type="button" class="reason-opener small" onClick={() => {
      reply.wantsReason.value = true;
      setTimeout(() => input.current?.focus());
    }}>{words.giveReason}</button>;
  }
  return (
    <label class="field">
      <span class="small">{words.reason}</span>
      <input ref={input} class="input" type="text" maxLength={2000} data-part="reason" value={reply.reason.value} onInput={(event) => (reply.reason.value = event.currentTarget.value)} />
    </label>
  );
}

/** A button that answers. What a critical question would allow wants a second press. */
function Press({ reply, answer, isYes = false, isMain = isYes, isSubmit = false, place, detail, onPress, children }: { reply: Reply; answer: string; isYes?: boolean; isMain?: boolean; isSubmit?: boolean; place?: number; detail?: string | undefined; onPress: () => void; children: ComponentChildren }) {
  const isArmed = reply.armed.value === answer;
  const press = (event: MouseEvent) => {
    event.preventDefault();
    // A double click is one intention, not two.
    if (reply.isBusy.value || event.detail > 1 || (isYes && !reply.confirm(answer))) return;
    onPress();
  };
  return (
    <button type={isSubmit ? 'submit' : 'button'} class={`button ${isMain ? '' : 'quiet'} ${isArmed ? 'armed' : ''}`} data-answer={answer} data-key={place !== undefined && place < 10 ? place : undefined} data-yes={isYes} title={detail} aria-disabled={reply.isBusy.value} onClick={press}>
      <span>{isArmed && typeof children === 'string' ? words.again(children) : children}</span>
      {place !== undefined && place < 10 && <kbd aria-hidden="true">{place}</kbd>}
    </button>
  );
}
