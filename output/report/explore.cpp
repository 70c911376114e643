// Plots of a page whose axes the reader chooses.
#include "output/report/explore.hpp"

namespace poisson::output {

std::string_view explore_style() {
  return R"css(
.explore .pick{display:flex;flex-wrap:wrap;gap:6px 16px;align-items:baseline;font-size:.9rem;margin:6px 0}
.explore>div{margin:10px 0 30px}
.explore select{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:5px;max-width:240px;padding:2px 4px;margin-left:5px}
.explore svg{max-width:none}.explore .parallel svg{width:auto}
.explore .note{font-size:.85rem;color:var(--soft);margin:2px 0}
.explore .parallel .small{paint-order:stroke;stroke:var(--back);stroke-width:3px;fill:var(--text)}
.explore .off{opacity:.07}.explore .band{fill:var(--accent);opacity:.3}
.explore .parallel path:hover{stroke:var(--text)!important;stroke-width:3}
.explore .parallel .grip{fill:transparent;cursor:ns-resize;touch-action:none}
.explore .bar{display:inline-block;width:90px;height:9px;border-radius:3px;margin:0 6px}
.explore summary{font-size:.9rem}
)css";
}

std::string_view explore_script() {
  return R"js(
for(const box of document.querySelectorAll(".explore")){
const table=document.querySelector("table.sortable");
const rows=[...table.tBodies[0].rows].map(r=>[...r.cells]),heads=[...table.querySelectorAll("th")].map(h=>h.textContent);
const nKeys=Number(box.dataset.keys),shown=box.dataset.shown.split(",").filter(t=>t).map(Number);
const fixed=v=>v===0?"0":Math.abs(v)>=1e5||Math.abs(v)<1e-3?v.toExponential(3).replace(/\.?0+e/,"e").replace("e+","e"):String(Number(v.toPrecision(4)));
const columns=heads.map((head,k)=>{
  const numbers=rows.some(r=>r[k]&&!Number.isNaN(valueOf(r[k]))),texts=rows.map(r=>r[k]?r[k].textContent:"");
  const names=numbers?[]:[...new Set(texts)];
  const values=rows.map((r,i)=>numbers?(r[k]?valueOf(r[k]):NaN):names.indexOf(texts[i]));
  const finite=values.filter(Number.isFinite),few=[...new Set(finite)];
  const low=finite.reduce((a,b)=>Math.min(a,b),Infinity),high=finite.reduce((a,b)=>Math.max(a,b),-Infinity);
  const name=heads.indexOf(head)<k?heads[k-1]+": "+head:head;
  return{k,name,names,values,texts,few,low,high,log:numbers&&low>0&&high>=30*low,varies:high-low>1e-9*Math.max(Math.abs(low),Math.abs(high))};
});
const usable=columns.filter(c=>c.varies),keys=usable.filter(c=>c.k>0&&c.k<=nKeys),answers=usable.filter(c=>shown.includes(c.k));
if(rows.length<2||!usable.some(c=>c.k>nKeys))continue;
const told=(c,v)=>{const i=c.k<=nKeys?c.values.indexOf(v):-1;
  return c.names.length?c.names[v]:i>=0&&c.texts[i][0]==="["?c.texts[i]:fixed(v)};
const at=(c,v)=>c.log?Math.log(v/c.low)/Math.log(c.high/c.low):(v-c.low)/(c.high-c.low);
const ticks=c=>{
  if(c.names.length)return c.names.slice(0,40).map((name,i)=>[i,name]);
  if(c.k<=nKeys&&c.few.length<7)return c.few.map(v=>[v,told(c,v)]);
  const list=[];
  if(c.log){
    for(let e=Math.floor(Math.log10(c.low));e<=Math.ceil(Math.log10(c.high));e++)
      for(const m of Math.log10(c.high/c.low)>3?[1]:[1,2,5]){const v=m*10**e;if(v>=c.low*.999&&v<=c.high*1.001)list.push([v,fixed(v)])}
    const every=Math.ceil(list.length/8);
    return list.filter((t,i)=>i%every===0);
  }
  const raw=(c.high-c.low)/5,p=10**Math.floor(Math.log10(raw)),step=[1,2,5,10].map(m=>m*p).find(s=>s>=raw*.999);
  for(let i=Math.ceil(c.low/step-1e-9);i*step<=c.high+1e-9*step;i++)list.push([i*step,fixed(i*step)]);
  return list;
};
const sample=document.createElement("div");sample.innerHTML="<svg></svg>";const space=sample.firstChild.namespaceURI;
const stops=[[68,1,84],[59,82,139],[33,145,140],[94,201,98],[253,231,37]];
const color=t=>{t=Math.min(Math.max(t,0),1)*4;const i=Math.min(Math.floor(t),3);
  return"rgb("+stops[i].map((s,d)=>Math.round(s+(t-i)*(stops[i+1][d]-s))).join(",")+")"};
const bar="linear-gradient(90deg,"+[0,1,2,3,4].map(i=>color(i/4)).join(",")+")";
const make=(parent,tag,attributes,text)=>{
  const e=tag==="div"||tag==="p"||tag==="label"||tag==="select"||tag==="option"||tag==="span"||tag==="details"||tag==="summary"||tag==="input"||tag==="i"?
    document.createElement(tag):document.createElementNS(space,tag);
  for(const a in attributes)e.setAttribute(a,attributes[a]);
  if(text!==undefined)e.textContent=text;
  parent.append(e);return e;
};
const row=(i,list)=>"case "+columns[0].texts[i]+": "+list.map(c=>c.name+" = "+columns[c.k].texts[i]).join(", ");
const select=(parent,label,choice,change,none)=>{
  const of=make(make(parent,"label",{},label),"select",{});
  if(none)make(of,"option",{value:-1},"-");
  for(const c of usable)make(of,"option",{value:c.k},c.name);
  of.value=choice?choice.k:-1;of.addEventListener("change",change);
  return()=>of.value<0?null:columns[of.value];
};
const legend=(parent,c)=>{
  if(c.names.length&&c.names.length<13){
    const p=make(parent,"p",{class:"note"},c.name+":");
    c.names.forEach((name,i)=>{make(p,"i",{class:"bar",style:"width:14px;background:"+color(at(c,i))});p.append(name)});
    return;
  }
  const p=make(parent,"p",{class:"note"},c.name+(c.log?" (logarithmic): ":": ")+told(c,c.low));
  make(p,"i",{class:"bar",style:"background:"+bar});p.append(told(c,c.high));
};
const plot=(x0,y0,c0)=>{
  const figure=make(box,"div",{}),pick=make(figure,"div",{class:"pick"}),area=make(figure,"div",{});
  const draw=()=>{
    area.replaceChildren();
    const x=getX(),y=getY(),c=getC(),w=Math.max(area.clientWidth,280),h=Math.min(420,Math.max(260,.6*w));
    const longest=[...ticks(y).map(t=>t[1]),...y.k<=nKeys?y.few.map(v=>told(y,v).slice(0,14)):[]].reduce((n,t)=>Math.max(n,t.length),3);
    const l=Math.min(26+7*longest,w/3),r=16,top=10,b=44;
    const svg=make(area,"svg",{viewBox:`0 0 ${w} ${h}`,width:w,height:h,role:"img","aria-label":y.name+" against "+x.name});
    const pair=(i)=>[x.values[i],y.values[i]],there=rows.map((_,i)=>i).filter(i=>pair(i).every(Number.isFinite));
    const places={},lists=[x,y].map(d=>[...new Set(there.map(i=>d.values[i]))].sort((p,q)=>p-q));
    for(const i of there)(places[pair(i)]=places[pair(i)]||[]).push(i);
    const cells=c&&x!==y&&x.k<=nKeys&&y.k<=nKeys&&x.k>0&&y.k>0&&lists[0].length*lists[1].length<=4*Object.keys(places).length;
    const px=v=>l+6+(w-l-r-12)*at(x,v),py=v=>h-b-6-(h-b-top-12)*at(y,v);
    const words=(d,text,tx,ty,anchor)=>make(svg,"text",{x:tx,y:ty,"text-anchor":anchor},text);
    if(cells){
      const cw=(w-l-r)/lists[0].length,ch=(h-b-top)/lists[1].length;let most=1;
      for(const place in places){
        const all=places[place].filter(i=>Number.isFinite(c.values[i]));if(!all.length)continue;
        most=Math.max(most,all.length);
        const mean=all.reduce((s,i)=>s+c.values[i],0)/all.length,[vx,vy]=pair(all[0]);
        const cell=make(svg,"rect",{x:l+cw*lists[0].indexOf(vx),y:h-b-ch*(lists[1].indexOf(vy)+1),width:cw+.4,height:ch+.4,fill:color(at(c,mean))});
        const of=x.name+" = "+x.texts[all[0]]+", "+y.name+" = "+y.texts[all[0]]+": ";
        make(cell,"title",{},all.length===1?of+c.name+" = "+c.texts[all[0]]+" (case "+columns[0].texts[all[0]]+")":
          of+"mean of "+all.length+" cases: "+fixed(mean)+", from "+fixed(Math.min(...all.map(i=>c.values[i])))+" to "+fixed(Math.max(...all.map(i=>c.values[i]))));
      }
      const name=(d,v)=>told(d,v).slice(0,14);
      const widest=lists[0].reduce((n,v)=>Math.max(n,name(x,v).length),1);
      const ex=Math.ceil((8*widest+8)/cw),ey=Math.ceil(16/ch);
      lists[0].forEach((v,i)=>{if(i%ex===0)words(x,name(x,v),l+cw*(i+.5),h-b+16,"middle")});
      lists[1].forEach((v,i)=>{if(i%ey===0)words(y,name(y,v),l-6,h-b-ch*(i+.5)+4,"end")});
      if(most>1)make(area,"p",{class:"note"},"A field is the mean of up to "+most+" cases, which differ in other keys.");
    }else{
      for(const[v,t]of ticks(x).filter((t,i,all)=>i%Math.ceil(all.length*46/(w-l-r))===0)){
        make(svg,"line",{x1:px(v),x2:px(v),y1:top,y2:h-b,class:"grid"});words(x,t,px(v),h-b+16,"middle")}
      for(const[v,t]of ticks(y)){make(svg,"line",{x1:l,x2:w-r,y1:py(v),y2:py(v),class:"grid"});words(y,String(t).slice(0,Math.floor(l/7)),l-6,py(v)+4,"end")}
      if(x.k>0&&x.k<=nKeys&&!x.names.length){
        const lines={};
        for(const i of there){const others=keys.filter(d=>d!==x).map(d=>d.values[i]);(lines[others]=lines[others]||[]).push(i)}
        for(const all of Object.values(lines))if(all.length>1){
          all.sort((i,j)=>x.values[i]-x.values[j]);
          make(svg,"path",{d:"M"+all.map(i=>px(x.values[i]).toFixed(1)+" "+py(y.values[i]).toFixed(1)).join("L"),fill:"none",stroke:"var(--soft)","stroke-width":1,opacity:.6})}
      }
      const size=there.length>300?3:4.5;
      for(const i of there){
        const has=c&&Number.isFinite(c.values[i]);
        const dot=make(svg,"circle",{cx:px(x.values[i]).toFixed(1),cy:py(y.values[i]).toFixed(1),r:size,fill:c?has?color(at(c,c.values[i])):"none":"var(--accent)",stroke:c&&!has?"var(--soft)":"none"});
        make(dot,"title",{},row(i,[...new Set([...keys,x,y,...c?[c]:[]])].filter(d=>d.k>0)));
      }
      if(there.length<rows.length)make(area,"p",{class:"note"},rows.length-there.length+" of "+rows.length+" cases have no such value.");
    }
    make(svg,"line",{x1:l,x2:l,y1:top,y2:h-b,class:"axis"});make(svg,"line",{x1:l,x2:w-r,y1:h-b,y2:h-b,class:"axis"});
    words(x,x.name+(x.log&&!cells?" (logarithmic)":""),l+(w-l-r)/2,h-8,"middle");
    make(svg,"text",{x:14,y:top+(h-b-top)/2,"text-anchor":"middle",transform:`rotate(-90 14 ${top+(h-b-top)/2})`},y.name+(y.log&&!cells?" (logarithmic)":""));
    if(c)legend(area,c);
  };
  const getX=select(pick,"across",x0,draw),getY=select(pick,"up",y0,draw),getC=select(pick,"colour",c0,draw,true);
  return draw;
};
const parallel=()=>{
  const figure=make(box,"div",{}),pick=make(figure,"div",{class:"pick"});
  const more=make(figure,"details",{});make(more,"summary",{},"which axes");
  const list=make(more,"div",{class:"pick"}),area=make(figure,"div",{class:"wide parallel"}),note=make(figure,"p",{class:"note"}),low=make(figure,"div",{});
  const first=[...keys,...answers].slice(0,8),kept=new Map();
  const checks=usable.filter(c=>c.k>0).map(c=>{
    const input=document.createElement("input");input.type="checkbox";input.checked=first.includes(c);
    const label=make(list,"label",{});label.append(input," "+c.name);input.addEventListener("change",()=>draw());
    return[c,input]});
  const draw=()=>{
    area.replaceChildren();low.replaceChildren();
    const axes=checks.filter(c=>c[1].checked).map(c=>c[0]),c=getC();
    for(const d of[...kept.keys()])if(!axes.includes(d))kept.delete(d);
    if(axes.length<2){note.textContent="Choose two axes or more.";return}
    const side=56,gap=Math.max(110,(area.clientWidth-2*side-20)/(axes.length-1)),w=2*side+20+gap*(axes.length-1),h=330,top=34,b=14;
    const svg=make(area,"svg",{viewBox:`0 0 ${w} ${h}`,width:w,height:h,role:"img","aria-label":"All cases, a line each, over "+axes.map(d=>d.name).join(", ")});
    const px=a=>side+gap*a,py=(d,v)=>h-b-(h-b-top)*at(d,v);
    const lines=[];
    rows.forEach((_,i)=>{
      const points=axes.map((d,a)=>Number.isFinite(d.values[i])?px(a).toFixed(1)+" "+py(d,d.values[i]).toFixed(1):null);
      let path="",on=false;for(const p of points){if(p)path+=(on?"L":"M")+p;on=Boolean(p)}
      if(!path)return;
      const line=make(svg,"path",{d:path,fill:"none",stroke:c&&Number.isFinite(c.values[i])?color(at(c,c.values[i])):"var(--soft)","stroke-width":rows.length>200?1.2:1.8});
      make(line,"title",{},row(i,axes));lines.push([i,line]);
    });
    const filter=()=>{
      let n=0;
      for(const[i,line]of lines){
        const on=[...kept].every(([d,[p,q]])=>d.values[i]>=p&&d.values[i]<=q);
        n+=on;line.classList.toggle("off",!on)}
      note.textContent=kept.size?n+" of "+rows.length+" cases are in the chosen ranges; a click on an axis clears its range.":"A drag along an axis chooses a range of it.";
    };
    axes.forEach((d,a)=>{
      make(svg,"line",{x1:px(a),x2:px(a),y1:top,y2:h-b,class:"axis"});
      make(svg,"text",{x:px(a),y:16,"text-anchor":"middle"},d.name.length>17?d.name.slice(0,16)+"\u2026":d.name);
      for(const[v,t]of ticks(d))make(svg,"text",{x:px(a)+5,y:py(d,v)+4,class:"small"},String(t).slice(0,12));
      const band=make(svg,"rect",{x:px(a)-6,width:12,y:0,height:0,class:"band"});
      const show=()=>{const k=kept.get(d);band.setAttribute("y",k?py(d,k[1]):0);band.setAttribute("height",k?py(d,k[0])-py(d,k[1]):0)};
      show();
      const grip=make(svg,"rect",{x:px(a)-14,width:28,y:top-8,height:h-b-top+16,class:"grip"});
      const value=e=>{const s=svg.getBoundingClientRect(),t=Math.min(Math.max((h-b-(e.clientY-s.top)*h/s.height)/(h-b-top),0),1);
        return d.log?d.low*(d.high/d.low)**t:d.low+t*(d.high-d.low)};
      let start=null,from=0;
      grip.addEventListener("pointerdown",e=>{start=value(e);from=e.clientY;grip.setPointerCapture(e.pointerId)});
      grip.addEventListener("pointermove",e=>{if(start===null)return;const v=value(e);
        if(Math.abs(e.clientY-from)>3){kept.set(d,[Math.min(start,v),Math.max(start,v)]);show();filter()}});
      grip.addEventListener("pointerup",e=>{if(Math.abs(e.clientY-from)<=3)kept.delete(d);start=null;show();filter()});
    });
    filter();
    if(c)legend(low,c);
  };
  const getC=select(pick,"colour",answers[0]||usable.find(c=>c.k>nKeys),draw,true);
  return draw;
};
const answer=answers[0]||usable.find(c=>c.k>nKeys),byValues=[...keys].filter(c=>!c.names.length).sort((p,q)=>new Set(q.values).size-new Set(p.values).size);
const across=byValues[0]||keys[0]||columns[0];
const draws=[plot(across,answer,keys.find(c=>c!==across))];
if(keys.length>1)draws.push(plot(keys[0],keys[1],answer));
if(usable.filter(c=>c.k>0).length>1)draws.push(parallel());
let width=-1;
const all=()=>{if(box.clientWidth!==width){width=box.clientWidth;for(const draw of draws)draw()}};
all();new ResizeObserver(all).observe(box);
}
)js";
}

}  // namespace poisson::output
